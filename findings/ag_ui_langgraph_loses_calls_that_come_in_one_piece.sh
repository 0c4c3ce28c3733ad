#!/usr/bin/env bash
# ag-ui-langgraph 0.0.47 over langgraph 1.2.22: which tool calls a page sees depends on how the model cuts its stream.
#
# OpenAI sends the name of a call, and its arguments in pieces behind it. Other models send a call whole, or two in one
# chunk, or do not stream. LangChain has the same message in the end. The adapter reads a chunk with a name as the start of
# the first call in it and passes over its arguments and the other calls. Calls that were not streamed are not announced at
# all. The snapshot of messages has all of them, but a client counts pending calls by the events.
# Seen: name first: both calls with arguments; one chunk: call 1 without arguments; not streamed: none; snapshots all alike.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "ag-ui-langgraph[fastapi]==0.0.47" langgraph==1.2.22 ag-ui-protocol==1.0.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio
import json

from ag_ui.core import RunAgentInput, UserMessage
from ag_ui_langgraph import LangGraphAgent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

CALLS = [{"name": "pick", "args": {"n": n}, "id": f"call-{n}"} for n in (1, 2)]
NAMES = [tool_call_chunk(name="pick", args="", id=call["id"], index=i) for i, call in enumerate(CALLS)]
ARGUMENTS = [tool_call_chunk(name=None, args=json.dumps(call["args"]), id=None, index=i) for i, call in enumerate(CALLS)]
WHOLE = [{**name, "args": arguments["args"]} for name, arguments in zip(NAMES, ARGUMENTS, strict=True)]


class UnstreamedModel(BaseChatModel):
    @property
    def _llm_type(self):
        return "test"

    def _generate(self, *arguments, **options):
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=CALLS))])


class StreamedModel(UnstreamedModel):
    pieces: list

    async def _astream(self, *arguments, **options):
        for piece in self.pieces:
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=piece))


async def announced(model: BaseChatModel) -> dict[str, str]:
    async def ask(state):
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    agent = LangGraphAgent(name="agent", graph=builder.compile(checkpointer=InMemorySaver()), emit_raw_events=False)
    fields = {"thread_id": "thread", "run_id": "run", "tools": [], "context": [], "state": {}, "forwarded_props": {}}
    calls: dict[str, str] = {}
    async for event in agent.run(RunAgentInput(messages=[UserMessage(id="1", content="Hello")], **fields)):
        if event.type == "TOOL_CALL_START":
            calls[event.tool_call_id] = ""
        if event.type == "TOOL_CALL_ARGS":
            calls[event.tool_call_id] += event.delta
        if event.type == "MESSAGES_SNAPSHOT":
            last = event.messages[-1]
    assert [json.loads(call.function.arguments) for call in last.tool_calls] == [{"n": 1}, {"n": 2}]
    return calls


async def main() -> None:
    name_first = await announced(
        StreamedModel(pieces=[[NAMES[0]], [ARGUMENTS[0]], [NAMES[1]], [ARGUMENTS[1]]])
    )
    one_chunk = await announced(StreamedModel(pieces=[WHOLE]))
    unstreamed = await announced(UnstreamedModel())
    print(f"{name_first = }\n{one_chunk = }\n{unstreamed = }")
    assert name_first == {"call-1": '{"n": 1}', "call-2": '{"n": 2}'}
    assert one_chunk == {"call-1": ""}
    assert unstreamed == {}


asyncio.run(main())
PYTHON
echo "as described"
