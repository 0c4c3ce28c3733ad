"""Integers that no double holds: refused where they are sent in, infinite numbers where they are sent out."""

from collections.abc import AsyncIterator

import pytest
from ag_ui.core import (
    CustomEvent,
    Interrupt,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    StateDeltaEvent,
    StateSnapshotEvent,
)

from agui_container.ports import Item
from tests.behaviour.client import custom_values, outcome, text
from tests.behaviour.conversations import interrupts
from tests.behaviour.subagents import make_delegating_assistant
from tests.conftest import Connect
from tests.engine.doubles import agent_of, ask

pytestmark = [pytest.mark.parametrize("digits", [400, 5_000])]


async def test_events_of_an_agent_have_null_in_their_place(connect: Connect, digits: int) -> None:
    huge = 10**digits
    agent = agent_of(
        CustomEvent(name="seen", value={"n": huge}),
        StateSnapshotEvent(snapshot={"n": [huge], "m": 1}),
        StateDeltaEvent(delta=[{"op": "add", "path": "/more", "value": {"n": -huge}}]),
    )
    events = await (await connect(agent)).run(ask())
    assert outcome(events) == "success"
    assert custom_values(events, "seen") == [{"n": None}]
    assert [event["snapshot"] for event in events if "snapshot" in event] == [{"n": [None], "m": 1}]
    assert [event["delta"][0]["value"] for event in events if "delta" in event] == [{"n": None}]


@pytest.mark.durable
async def test_a_subagent_that_asks_with_one_can_be_answered(connect: Connect, digits: int) -> None:
    async def agent(input: RunAgentInput) -> AsyncIterator[Item]:
        if input.resume:
            yield "Answered."
            return
        question = Interrupt(id="q", reason="choice", metadata={"n": 10**digits})
        asked = RunFinishedInterruptOutcome(interrupts=[question])
        yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id, outcome=asked)

    client = await connect(make_delegating_assistant(agent))
    (interrupt,) = interrupts(await client.run(ask(text="delegate go")))
    assert interrupt["metadata"] == {"n": None}
    answered = {"interruptId": "q", "status": "resolved", "payload": "x"}
    events = await client.run(ask(run="r2", messages=[], resume=[answered]))
    assert "Answered." in text(events)
    assert outcome(events) == "success"
