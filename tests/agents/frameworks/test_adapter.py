"""Translations of frameworks as agents: thread ids, approvals, failures, and translations that block."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import (
    BaseEvent,
    Interrupt,
    RawEvent,
    ResumeEntry,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateSnapshotEvent,
    TextMessageChunkEvent,
)
from msgspec.structs import replace

from agui_container.agents.as_agent import thread_cleanup_of
from agui_container.agents.frameworks.adapter import AdapterSource
from agui_container.agents.upstream.agent import UpstreamAgent
from agui_container.ports import Caller, RunContext
from agui_container.protocol.errors import AppError
from tests.contexts import collect_items, of_type, run_context, run_input


class Framework:
    def __init__(self, *events: BaseEvent) -> None:
        self.events = events
        self.inputs: list[RunAgentInput] = []
        self.forgotten: list[str] = []

    async def translate(self, input: RunAgentInput, _: RunContext) -> AsyncIterator[BaseEvent]:
        self.inputs.append(input)
        for event in self.events:
            yield event

    async def forget(self, thread: str) -> None:
        self.forgotten.append(thread)

    @property
    def agent(self) -> UpstreamAgent:
        return UpstreamAgent(AdapterSource(self.translate, lambda approved: {"confirmed": approved}, self.forget))


def owned_by(owner: str) -> RunContext:
    return replace(run_context(), caller=Caller(owner=owner, request_id="r"))


async def test_a_framework_has_another_thread_for_each_owner_and_clients_read_their_own_id() -> None:
    framework = Framework(StateSnapshotEvent(snapshot={}))
    for ctx in (owned_by("ada"), owned_by("bob")):
        framework.events = (StateSnapshotEvent(snapshot={"thread": f"user of {ctx.thread_key}"}),)
        (snapshot,) = of_type(await collect_items(framework.agent.run(run_input("hi"), ctx)), StateSnapshotEvent)
        assert snapshot.snapshot == {"thread": "user of thread"}
    first, second = framework.inputs
    assert first.thread_id != second.thread_id
    assert first.thread_id != "thread"
    cleanup = thread_cleanup_of(framework.agent)
    assert cleanup is not None
    await cleanup.forget_thread("ada", "thread")
    assert framework.forgotten == [first.thread_id]


async def test_starts_and_internals_of_a_framework_are_left_out_and_every_field_is_given() -> None:
    started = RunStartedEvent(thread_id="own", run_id="own")
    framework = Framework(started, RawEvent(event={"secret": 1}), TextMessageChunkEvent(message_id="m", delta="hi"))
    events = await collect_items(framework.agent.run(run_input("hi"), run_context()))
    assert not of_type(events, RunStartedEvent)
    assert not of_type(events, RawEvent)
    (given,) = framework.inputs
    assert (given.state, given.tools, given.context, given.forwarded_props) == ({}, [], [], {})


async def test_an_approval_has_this_servers_form() -> None:
    asked = Interrupt(id="q", reason="confirm", tool_call_id="c", response_schema={"type": "string"})
    outcome = RunFinishedInterruptOutcome(interrupts=[asked])
    framework = Framework(RunFinishedEvent(thread_id="own", run_id="own", outcome=outcome))
    (end,) = of_type(await collect_items(framework.agent.run(run_input("pay"), run_context())), RunFinishedEvent)
    assert isinstance(end.outcome, RunFinishedInterruptOutcome)
    (interrupt,) = end.outcome.interrupts
    assert (interrupt.reason, interrupt.message) == ("tool_call", "Allow this call?")
    assert interrupt.response_schema is not None
    assert interrupt.response_schema["required"] == ["approved"]


def answering(payload: object, status: Any = "resolved") -> RunAgentInput:  # noqa: ANN401 - a literal of AG-UI
    entry = ResumeEntry(interrupt_id="q", status=status, payload=payload)
    return run_input("pay").model_copy(update={"resume": [entry]})


@pytest.mark.parametrize(
    ("input", "payload"),
    [
        (answering({"approved": True}), {"confirmed": True}),
        (answering({"approved": False, "reason": "no"}), {"confirmed": False}),
        (answering({"values": 3}), {"values": 3}),
        (answering(None, "cancelled"), None),
    ],
)
async def test_an_answer_is_what_the_framework_expects(input: RunAgentInput, payload: object) -> None:
    framework = Framework()
    await collect_items(framework.agent.run(input, run_context()))
    assert [entry.payload for entry in framework.inputs[0].resume or ()] == [payload]


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"approved": "yes"}, "resume.0.payload: approved must be true or false."),
        ({"approved": True, "editedArgs": {}}, "resume.0.payload.editedArgs: this agent's calls stay as made."),
    ],
)
async def test_an_answer_that_a_framework_cannot_take_is_refused(payload: object, message: str) -> None:
    with pytest.raises(AppError) as caught:
        await collect_items(Framework().agent.run(answering(payload), run_context()))
    assert caught.value.message == message
