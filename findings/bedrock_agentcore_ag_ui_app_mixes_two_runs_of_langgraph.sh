#!/usr/bin/env bash
# bedrock-agentcore 1.25.0 over ag-ui-langgraph 0.0.47: of two runs at a time one ends under the other's id, and the other one fails.
#
# `AGUIApp.entrypoint` takes any object with `run`, and calls that one object for every request. `LangGraphAgent` has such a
# `run`, and keeps the state of the current run in an attribute. Its own FastAPI endpoint makes a copy for each request, so
# the state of a second run never gets there. Here it does, while the first run streams: the rest of the first answer goes
# on under the second run's ids, and when the first run ends, the second one has no state any more.
# Seen: first: its text in the message `second`, RUN_FINISHED for run "second"; second: one piece of text, RUN_ERROR "… 'NoneType' …";
# one after the other, or with a copy for each run, both are whole.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check bedrock-agentcore==1.25.0 "ag-ui-langgraph[fastapi]==0.0.47" \
  langgraph==1.2.24 langchain-core==1.8.3 ag-ui-protocol==1.0.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio
import json
import logging
from collections.abc import Callable

from ag_ui_langgraph import LangGraphAgent
from bedrock_agentcore.runtime.ag_ui import build_ag_ui_app
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

logging.disable(logging.CRITICAL)
released: dict[str, asyncio.Event] = {}


class SlowModel(GenericFakeChatModel):
    """Says the user's text back. It stops behind the first word until it is released."""

    messages: object = iter(())

    async def _astream(self, messages, stop=None, run_manager=None, **options):
        text = messages[-1].content
        for word in ("You ", "said ", text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word, id=text))
            await released[text].wait()


async def chat(state, config):
    return {"messages": [await SlowModel().ainvoke(state["messages"], config)]}


builder = StateGraph(MessagesState)
builder.add_node("chat", chat)
builder.add_edge(START, "chat")
builder.add_edge("chat", END)
graph = builder.compile(checkpointer=InMemorySaver())


def agent() -> LangGraphAgent:
    return LangGraphAgent(name="agent", graph=graph)


def copying() -> Callable[[object], object]:
    template = agent()
    return lambda run_input: template.clone().run(run_input)


async def run(app: object, thread: str, name: str, text_has_come: asyncio.Event) -> list[str]:
    message = {"id": f"user-{name}", "role": "user", "content": name}
    body = {"threadId": f"{thread}-{name}", "runId": name, "messages": [message]}
    body |= {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
    requests = [{"type": "http.request", "body": json.dumps(body).encode()}]
    kinds = {"TEXT_MESSAGE_CONTENT": "messageId", "RUN_FINISHED": "runId", "RUN_ERROR": "message"}
    seen: list[str] = []

    async def receive() -> dict[str, object]:
        return requests.pop() if requests else await asyncio.Future()

    async def send(sent: dict) -> None:
        for line in sent.get("body", b"").decode().splitlines():
            event = json.loads(line.removeprefix("data: ") or "{}")
            if event.get("type") in kinds:
                seen.append(f"{event['type']} {event[kinds[event['type']]]}")
                text_has_come.set()

    await app({"type": "http", "method": "POST", "path": "/invocations", "headers": []}, receive, send)
    return seen


async def runs(thread: str, served: object, at_once: bool) -> list[list[str]]:
    app = build_ag_ui_app(served)
    tasks = []
    for name in ("first", "second"):
        released[name] = asyncio.Event()
        text_has_come = asyncio.Event()
        tasks.append(asyncio.create_task(run(app, thread, name, text_has_come)))
        await text_has_come.wait()
        if not at_once:
            released[name].set()
            await tasks[-1]
    released["first"].set()
    await tasks[0]
    released["second"].set()
    return [await task for task in tasks]


def whole(name: str) -> list[str]:
    return [f"TEXT_MESSAGE_CONTENT {name}"] * 3 + [f"RUN_FINISHED {name}"]


async def main() -> None:
    mixed = await runs("mixed", agent(), at_once=True)
    in_turn = await runs("turn", agent(), at_once=False)
    copied = await runs("copied", copying(), at_once=True)
    print("at once:        ", *mixed, sep="\n  ")
    print("one by one:     ", *in_turn, sep="\n  ")
    print("a copy for each:", *copied, sep="\n  ")
    foreign = ["TEXT_MESSAGE_CONTENT second"] * 2
    assert mixed[0] == ["TEXT_MESSAGE_CONTENT first", *foreign, "RUN_FINISHED second"]
    assert mixed[1][0] == "TEXT_MESSAGE_CONTENT second"
    assert mixed[1][-1].startswith("RUN_ERROR argument of type 'NoneType'")
    assert in_turn == copied == [whole("first"), whole("second")]


asyncio.run(main())
PYTHON
echo "as described"
