#!/usr/bin/env bash
# ag-ui-langgraph 0.0.47 over langgraph 1.2.22: a list that nodes append to doubles with each question, if the page only sends its state back.
#
# An AG-UI page gets the graph's state as a snapshot, and its client sends it with the next run. The adapter passes that
# state to the graph as input. LangGraph does not replace a key that has a reducer, such as `Annotated[list, operator.add]`:
# it applies the reducer to what the checkpoint has and to the input, which here are the same. Keys without a reducer are
# fine, and so are messages, whose reducer goes by ids. It takes an `input_schema` without the key to leave it alone.
# Seen: the list has 1, 3 and 7 entries after three questions; with `input_schema`, or a page that sends {}, 1, 2 and 3.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "ag-ui-langgraph[fastapi]==0.0.47" langgraph==1.2.22 ag-ui-protocol==1.0.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio
import logging
import operator
from typing import Annotated

from ag_ui.core import RunAgentInput, UserMessage
from ag_ui_langgraph import LangGraphAgent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

logging.disable(logging.CRITICAL)


class State(MessagesState):
    visited: Annotated[list[str], operator.add]
    questions: int


def visit(state: State) -> dict:
    questions = state.get("questions", 0) + 1
    return {"messages": [AIMessage("Done.")], "visited": [f"page {questions}"], "questions": questions}


async def counts(is_echoed: bool, **schemas) -> list[tuple[int, int]]:
    """Ask three questions. Return the length of the list and the plain counter after each."""
    builder = StateGraph(State, **schemas)
    builder.add_node("visit", visit)
    builder.add_edge(START, "visit")
    agent = LangGraphAgent(name="agent", graph=builder.compile(checkpointer=InMemorySaver()), emit_raw_events=False)
    messages, state, found = [], {}, []
    for question in "123":
        run = RunAgentInput(
            thread_id="thread",
            run_id=f"run {question}",
            messages=[*messages, UserMessage(id=question, content="Go on.")],
            tools=[],
            context=[],
            state=state if is_echoed else {},
            forwarded_props={},
        )
        events = [event async for event in agent.run(run)]
        messages = [event.messages for event in events if event.type == "MESSAGES_SNAPSHOT"][-1]
        state = [event.snapshot for event in events if event.type == "STATE_SNAPSHOT"][-1]
        found.append((len(state["visited"]), state["questions"]))
    assert len(messages) == 6
    return found


async def main() -> None:
    echoed = await counts(is_echoed=True)
    empty = await counts(is_echoed=False)
    with_schema = await counts(is_echoed=True, input_schema=MessagesState)
    print(f"{echoed = }\n{empty = }\n{with_schema = }")
    assert echoed == [(1, 1), (3, 2), (7, 3)]
    assert empty == with_schema == [(1, 1), (2, 2), (3, 3)]


asyncio.run(main())
PYTHON
echo "as described"
