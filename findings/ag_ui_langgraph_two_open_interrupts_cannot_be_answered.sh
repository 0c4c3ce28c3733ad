#!/usr/bin/env bash
# ag-ui-langgraph 0.0.47 over langgraph 1.2.22: a run that ends with two interrupts can never be continued.
#
# Two nodes that run beside each other may both call `interrupt()`. With `emit_interrupt_outcome=True` the adapter ends the
# run with both interrupts and an id for each. It makes one value for the graph of a `resume` that names them, in place of
# LangGraph's map from ids to values, so LangGraph refuses it; and a single answer likewise, since it passes on no id at all.
# Seen: one interrupt, one answer: the run goes on; two interrupts: "you must specify the interrupt id" for one answer and for
# two; the plain graph goes on with the same two ids.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "ag-ui-langgraph[fastapi]==0.0.47" langgraph==1.2.22 ag-ui-protocol==1.0.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio
import logging

from ag_ui.core import ResumeEntry, RunAgentInput, UserMessage
from ag_ui_langgraph import LangGraphAgent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

logging.disable(logging.CRITICAL)


def graph(*questions: str):
    builder = StateGraph(MessagesState)
    for question in questions:
        builder.add_node(question, lambda _, asked=question: {"messages": [AIMessage(f"{asked}: {interrupt(asked)}")]})
        builder.add_edge(START, question)
    return builder.compile(checkpointer=InMemorySaver())


async def last_event(agent: LangGraphAgent, **fields):
    run = RunAgentInput(
        thread_id="thread",
        run_id="run",
        messages=[UserMessage(id="1", content="Hello")],
        tools=[],
        context=[],
        state={},
        forwarded_props={},
        **fields,
    )
    return [event async for event in agent.run(run)][-1]


async def by_ag_ui(questions: list[str], answers: int) -> str:
    agent = LangGraphAgent(name="agent", graph=graph(*questions), emit_interrupt_outcome=True, emit_raw_events=False)
    interrupts = (await last_event(agent)).outcome.interrupts
    assert len({each.id for each in interrupts}) == len(questions)
    resume = [ResumeEntry(interrupt_id=each.id, status="resolved", payload="yes") for each in interrupts[:answers]]
    event = await last_event(agent, resume=resume)
    return event.message if event.type == "RUN_ERROR" else event.type.value


async def by_langgraph(*questions: str) -> list[str]:
    config = {"configurable": {"thread_id": "thread"}}
    compiled = graph(*questions)
    paused = await compiled.ainvoke({"messages": []}, config)
    ended = await compiled.ainvoke(Command(resume={each.id: "yes" for each in paused["__interrupt__"]}), config)
    return sorted(message.content for message in ended["messages"])


async def main() -> None:
    one = await by_ag_ui(["left"], 1)
    one_of_two = await by_ag_ui(["left", "right"], 1)
    two = await by_ag_ui(["left", "right"], 2)
    plain = await by_langgraph("left", "right")
    print(f"{one = }\n{one_of_two = }\n{two = }\n{plain = }")
    assert one == "RUN_FINISHED"
    assert "you must specify the interrupt id" in one_of_two
    assert "you must specify the interrupt id" in two
    assert plain == ["left: yes", "right: yes"]


asyncio.run(main())
PYTHON
echo "as described"
