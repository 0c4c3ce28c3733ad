"""Runs that yield more than a run or a server may hold: they end, and other runs go on."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import CustomEvent, RunAgentInput

from agui_container.engine.limits import CapacityLimits
from agui_container.ports import Item, RunContext
from agui_container.ports.records import RunKey
from agui_container.run.fairness import BURST
from tests.behaviour.client import begin_run, outcome
from tests.conftest import Connect
from tests.engine.doubles import ask


async def emit_events_without_end(_: RunAgentInput) -> AsyncIterator[Item]:
    while True:
        yield CustomEvent(name="n", value="x" * 100)


async def emit_text_without_end(_: RunAgentInput) -> AsyncIterator[Item]:
    while True:
        yield "x" * 100


async def emit_beyond_limit(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    """Emit more text than the limit allows before the next yield, as a tool can."""
    for _number in range(20_000):
        ctx.emit("x" * 100)
    yield ""


@pytest.mark.parametrize("agent", [emit_events_without_end, emit_text_without_end, emit_beyond_limit])
async def test_the_event_that_exceeds_the_limit_of_a_run_is_its_last(connect: Connect, agent: object) -> None:
    client = await connect(agent, CapacityLimits(run_bytes=200_000))
    events = await client.run(ask())
    assert outcome(events) == "RUN_LIMIT_EXCEEDED"
    log = client.service.registry.by_key[RunKey("everybody", "t1", "r1")].log
    assert 200_000 < log.bytes < 201_000


class AgentsInStep:
    """An agent whose runs wait after two texts and then all yield the rest without waiting."""

    def __init__(self) -> None:
        self.may_speak = asyncio.Event()

    async def run(self, _: RunAgentInput) -> AsyncIterator[Item]:
        yield "a"
        yield "b"
        await self.may_speak.wait()
        for _number in range(BURST - 1):
            yield "x" * 1_000


async def test_all_runs_together_hold_at_most_twice_what_a_server_holds(connect: Connect) -> None:
    chorus = AgentsInStep()
    client = await connect(chorus, CapacityLimits(all_bytes=100_000))
    streams = [await begin_run(client, thread=f"t{number}") for number in range(10)]
    chorus.may_speak.set()
    ends = [outcome(await stream.rest()) for stream in streams]
    assert set(ends) == {"RATE_LIMIT_EXCEEDED"}
    assert 100_000 < client.service.readings()["agui.limit.used"]["logBytes"] < 200_000
