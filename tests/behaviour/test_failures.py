"""Failures of agents: the run stays legal, and the client learns nothing internal."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import cast

import pytest
from ag_ui import core as ag

from agui_container.ports import Item, MessageText
from agui_container.protocol.errors import AppError, ErrorCode
from tests.behaviour.client import outcome, types
from tests.conftest import Connect
from tests.engine.doubles import agent_of, ask
from tests.protocol.samples import without_validation

SECRET = "sk-secret in /home/me/key.pem"  # noqa: S105 - it stands for one

OPENERS: list[Item] = [
    ag.StepStartedEvent(step_name="s"),
    ag.TextMessageStartEvent(message_id="m", role="assistant"),
    ag.TextMessageContentEvent(message_id="m", delta="Hel"),
    ag.ToolCallStartEvent(tool_call_id="c", tool_call_name="tool"),
    ag.ReasoningMessageStartEvent(message_id="g", role="reasoning"),
]
OPENED = [
    *("STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TOOL_CALL_START", "REASONING_MESSAGE_START"),
    *("REASONING_MESSAGE_END", "TOOL_CALL_END", "TEXT_MESSAGE_END", "STEP_FINISHED"),
]


async def test_an_agent_that_cannot_even_be_called_is_an_error(connect: Connect) -> None:
    class Agent:
        def run(self, _: ag.RunAgentInput) -> AsyncIterator[Item]:
            raise ValueError(SECRET)

    client = await connect(Agent())
    assert types(await client.run(ask())) == ["RUN_STARTED", "RUN_ERROR"]


async def test_raising_after_the_end_changes_nothing(connect: Connect) -> None:
    async def agent(_: ag.RunAgentInput) -> AsyncIterator[Item]:
        yield ag.RunFinishedEvent(thread_id="t1", run_id="r1")
        raise ValueError(SECRET)

    client = await connect(agent)
    assert types(await client.run(ask())) == ["RUN_STARTED", "RUN_FINISHED"]
    assert types(await client.run(ask(run="r2"))) == ["RUN_STARTED", "RUN_FINISHED"]


async def test_the_agents_own_error_says_what_it_says(connect: Connect) -> None:
    client = await connect(agent_of("Hel", ag.RunErrorEvent(message="Out of coffee.", code="NO_COFFEE")))
    events = await client.run(ask())
    assert types(events)[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert (events[-1]["code"], events[-1]["message"]) == ("NO_COFFEE", "Out of coffee.")


async def test_a_failure_ends_subagents_as_failed(connect: Connect) -> None:
    async def agent(_: ag.RunAgentInput) -> AsyncIterator[Item]:
        yield ag.SubagentStartedEvent(subagent_run_id="outer", name="helper")
        yield ag.SubagentStartedEvent(subagent_run_id="inner", name="helper", parent_subagent_run_id="outer")
        raise AppError(ErrorCode.MODEL_ERROR, "The model failed.")

    client = await connect(agent)
    events = await client.run(ask())
    assert [(event.get("subagentRunId"), event["message"]) for event in events[-3:]] == [
        ("inner", "The model failed."),
        ("outer", "The model failed."),
        (None, "The model failed."),
    ]
    assert types(events)[-3:] == ["SUBAGENT_ERROR", "SUBAGENT_ERROR", "RUN_ERROR"]


def make_circular_value() -> object:
    value: dict[str, object] = {}
    value["itself"] = value
    return value


def interrupt_event(*ids: str) -> ag.RunFinishedEvent:
    interrupts = [ag.Interrupt(id=key, reason="approval") for key in ids]
    outcome = without_validation(ag.RunFinishedInterruptOutcome, type="interrupt", interrupts=interrupts)
    return ag.RunFinishedEvent(thread_id="t1", run_id="r1").model_copy(update={"outcome": outcome})


START = ag.RunStartedEvent(thread_id="t1", run_id="r1")
CALL = ag.ToolCallStartEvent(tool_call_id="c", tool_call_name="tool")
TEXT = [ag.TextMessageStartEvent(message_id="m1", role="assistant"), MessageText("m1", "a")]
TEXT_TYPES = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
ILLEGAL: dict[str, tuple[Sequence[object], Sequence[str]]] = {
    "a content without a start": ([*OPENERS, ag.TextMessageContentEvent(message_id="m2", delta="x")], OPENED),
    "a second start of a message": ([*OPENERS, ag.TextMessageStartEvent(message_id="m", role="assistant")], OPENED),
    "an end without a start": ([*OPENERS, ag.TextMessageEndEvent(message_id="m2")], OPENED),
    "a step that was not started": ([*OPENERS, ag.StepFinishedEvent(step_name="other")], OPENED),
    "a parent that was not started": (
        [*OPENERS, ag.SubagentStartedEvent(subagent_run_id="a", name="n", parent_subagent_run_id="b")],
        OPENED,
    ),
    "text of another message": ([*TEXT, MessageText("m2", "a")], TEXT_TYPES),
    "text that is none": ([*TEXT, MessageText("m1", cast("str", 1))], TEXT_TYPES),
    "a second start of the run": ([START, START], []),
    "a start of the run later on": ([ag.CustomEvent(name="n", value=1), START], ["CUSTOM"]),
    "success with a call open": ([CALL], ["TOOL_CALL_START", "TOOL_CALL_END"]),
    "its own success with a call open": (
        [CALL, ag.RunFinishedEvent(thread_id="t1", run_id="r1")],
        ["TOOL_CALL_START", "TOOL_CALL_END"],
    ),
    "a result of an unknown call": (
        [ag.ToolCallResultEvent(message_id="m", tool_call_id="nobody", content="forged")],
        [],
    ),
    "one interrupt twice": ([interrupt_event("i", "i")], []),
    "no interrupts": ([interrupt_event()], []),
    "None": ([None], []),
    "a number": ([1], []),
    "bytes": ([b"bytes"], []),
    "a dict": ([{"type": "CUSTOM", "name": "n", "value": 1}], []),
    "a list": ([["a"]], []),
    "an object": ([ag.StateSnapshotEvent(snapshot=object())], []),
    "a circle": ([ag.CustomEvent(name="n", value=make_circular_value())], []),
    "a wrong type": ([without_validation(ag.TextMessageStartEvent, message_id=7, role="assistant")], []),
    "too much": ([ag.CustomEvent(name="n", value="x" * 8_000_001)], []),
    "a type that ends the run": (
        [ag.CustomEvent(name="n", value=1).model_copy(update={"type": ag.EventType.RUN_FINISHED})],
        [],
    ),
    "a bad end": ([ag.RunFinishedEvent(thread_id="t", run_id="r", result=object())], []),
}
"""Items of agents, the last of which they may not send, and the types of the events between the first and the last."""


@pytest.mark.parametrize(("items", "sent"), ILLEGAL.values(), ids=ILLEGAL)
async def test_what_an_agent_may_not_send_ends_its_run_as_its_error(
    connect: Connect, items: Sequence[object], sent: Sequence[str]
) -> None:
    events = await (await connect(agent_of(*items))).run(ask())
    assert types(events) == ["RUN_STARTED", *sent, "RUN_ERROR"]
    assert outcome(events) == "AGENT_ERROR"


async def test_an_error_carries_the_request_id(connect: Connect) -> None:
    async def agent(_: ag.RunAgentInput) -> AsyncIterator[Item]:
        raise ValueError
        yield "never"

    client = (await connect(agent)).with_headers(x_request_id="req-42")
    last = (await client.run(ask()))[-1]
    assert last["metadata"] == {"requestId": "req-42", "retryable": False}


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        GeneratorExit(),
        StopAsyncIteration(),
        BaseException("neither"),
        BaseExceptionGroup("g", [ValueError(), SystemExit()]),
        UnprintableError(),
        ValueError(SECRET),
    ],
)
async def test_an_agent_cannot_take_the_server_with_it(connect: Connect, error: BaseException) -> None:
    async def agent(asked: ag.RunAgentInput) -> AsyncIterator[Item]:
        yield "Hel"
        if asked.run_id == "bad":
            raise error

    client = await connect(agent)
    bad = await client.run(ask(run="bad"))
    assert types(bad)[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert outcome(bad) == "AGENT_ERROR"
    assert bad[-1]["message"] == "The agent failed; the server's log has the cause."
    assert SECRET not in str(bad)
    assert outcome(await client.run(ask(run="good"))) == "success"
