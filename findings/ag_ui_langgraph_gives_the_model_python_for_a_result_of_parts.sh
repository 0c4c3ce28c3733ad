#!/usr/bin/env bash
# ag-ui-langgraph 0.0.47 over langchain-core 1.8.3: a page's result with a text and a picture reaches the model as Python source, picture included.
#
# In AG-UI 1.0 the content of a `ToolMessage` is a text or a list of parts, as a user's is. The adapter converts the parts of
# a user for LangChain, and passes those of a result on as they are. LangChain's `ToolMessage` makes a text of each item that
# it does not know. So the model reads how Python prints the class, with the base64 of the picture as text to pay for. The
# snapshot has an empty result in its place, which the page takes over and sends from then on. Nothing is logged.
# Seen: user: text and image blocks; result: "type='text' id=None text='The chart:' …", "type='image' … value='QUJD' …"; page: "".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "ag-ui-langgraph[fastapi]==0.0.47" langgraph==1.2.22 langchain-core==1.8.3 ag-ui-protocol==1.0.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio
import logging

from ag_ui.core import (
    AssistantMessage,
    FunctionCall,
    ImageInputContent,
    InputContentDataSource,
    RunAgentInput,
    TextInputContent,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from ag_ui_langgraph import LangGraphAgent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

logging.disable(logging.CRITICAL)
read: dict[str, object] = {}


def answer(state: MessagesState) -> dict:
    read.update({message.type: message.content for message in state["messages"]})
    return {"messages": [AIMessage("It rises.")]}


async def main() -> None:
    picture = ImageInputContent(source=InputContentDataSource(value="QUJD", mime_type="image/png"))
    parts = [TextInputContent(text="The chart:"), picture]
    call = ToolCall(id="call", function=FunctionCall(name="draw", arguments="{}"))
    run = RunAgentInput(
        thread_id="thread",
        run_id="run",
        messages=[
            UserMessage(id="1", content=parts),
            AssistantMessage(id="2", tool_calls=[call]),
            ToolMessage(id="3", tool_call_id="call", content=parts),
        ],
        tools=[],
        context=[],
        state={},
        forwarded_props={},
    )
    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    agent = LangGraphAgent(name="agent", graph=builder.compile(checkpointer=InMemorySaver()), emit_raw_events=False)
    events = [event async for event in agent.run(run)]
    thread = [event.messages for event in events if event.type == "MESSAGES_SNAPSHOT"][-1]
    print("user:  ", read["human"])
    print("result:", read["tool"])
    print("page:  ", thread[2].content)
    assert [part["type"] for part in read["human"]] == ["text", "image_url"]
    text, image = read["tool"]
    assert text.startswith("type='text' id=None text='The chart:'")
    assert image.startswith("type='image'") and "value='QUJD'" in image
    assert events[-1].type == "RUN_FINISHED"
    assert thread[0].content == parts
    assert thread[2].content == ""


asyncio.run(main())
PYTHON
echo "as described"
