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

from agui_container.agents.assistant.assistant import Assistant
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item
from agui_container.tools.function_tool import tool
from tests.behaviour.client import Refused, outcome, text
from tests.behaviour.conversations import interrupts, results
from tests.behaviour.goals import custom_values
from tests.behaviour.over_platform import refusals_are_folded
from tests.behaviour.subagents import make_delegating_assistant
from tests.conftest import Connect
from tests.engine.doubles import ask
from tests.requirements import requirement

pytestmark = [pytest.mark.durable, pytest.mark.parametrize("digits", [400, 5_000])]


@requirement("assistant.large-integers")
async def test_events_of_an_agent_have_null_in_their_place(connect: Connect, digits: int) -> None:
    huge = 10**digits

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield CustomEvent(name="seen", value={"n": huge})
        yield StateSnapshotEvent(snapshot={"n": [huge], "m": 1})
        yield StateDeltaEvent(delta=[{"op": "add", "path": "/more", "value": {"n": -huge}}])

    events = await (await connect(agent)).run(ask())
    assert outcome(events) == "success"
    assert custom_values(events, "seen") == [{"n": None}]
    assert [event["snapshot"] for event in events if "snapshot" in event] == [{"n": [None], "m": 1}]
    assert [event["delta"][0]["value"] for event in events if "delta" in event] == [{"n": None}]


@requirement("assistant.large-integers")
async def test_the_result_of_a_tool_says_infinity(connect: Connect, digits: int) -> None:
    @tool
    def count() -> dict[str, object]:
        """Count."""
        return {"n": 10**digits, "m": [-(10**digits), 1]}

    events = await (await connect(Assistant(OfflineModel(), (count,)))).run(ask(text="call count {}"))
    assert results(events) == ['{"n":"Infinity","m":["-Infinity",1]}']
    assert outcome(events) == "success"


@requirement("assistant.large-integers")
async def test_a_call_with_one_as_an_argument_is_not_run(connect: Connect, digits: int) -> None:
    @tool
    def double(n: float) -> float:
        """Double a number."""
        return n * 2

    client = await connect(Assistant(OfflineModel(), (double,)))
    events = await client.run(ask(text=f'call double {{"n": {"1" * digits}}}'))
    assert results(events) == ["Error: the arguments are not valid JSON."]
    assert outcome(events) == "success"


@requirement("assistant.large-integers")
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


@requirement("assistant.large-integers")
@refusals_are_folded
@pytest.mark.parametrize("field", ["state", "forwardedProps"])
async def test_a_request_with_one_is_refused_with_its_place(connect: Connect, digits: int, field: str) -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "never"

    client = await connect(agent)
    place, number = f'"{field}": {{"n": ', "1" * digits
    body = f'{{"threadId": "t1", "runId": "r1", "messages": [], {place}{number}}}}}'
    with pytest.raises(Refused) as caught:
        await client.run(body)
    assert (caught.value.code, caught.value.message) == ("VALIDATION_ERROR", f"{field}.n: the number is too large.")
