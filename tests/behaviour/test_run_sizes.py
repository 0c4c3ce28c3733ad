"""Runs that yield more than a run or a server may hold: they end, and other runs go on."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import CustomEvent, RunAgentInput

from agui_container.engine.admission.quota import Limit
from agui_container.engine.policy import CapacityLimits
from agui_container.engine.run.fairness import BURST
from agui_container.ports import Item, RunContext
from agui_container.ports.records import RunKey
from tests.behaviour.client import begin_run, outcome
from tests.behaviour.conftest import ServeOver
from tests.behaviour.dialogues import ERROR
from tests.conftest import Connect
from tests.engine.doubles import ask
from tests.requirements import requirement

PIECE = "x" * 5_000
AROUND_PIECES = ("RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_ERROR")


async def emit_events_without_end(_: RunAgentInput) -> AsyncIterator[Item]:
    """Yield custom events without end."""
    while True:
        yield CustomEvent(name="n", value="x" * 100)


async def emit_text_without_end(_: RunAgentInput) -> AsyncIterator[Item]:
    """Yield text without end."""
    while True:
        yield "x" * 100


async def emit_beyond_limit(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    """Emit more text than the limit allows before the next yield, as a tool can."""
    for _number in range(20_000):
        ctx.emit("x" * 100)
    yield ""


@requirement("limit.size")
async def test_a_run_that_says_too_much_is_ended(connect: Connect) -> None:
    client = await connect(emit_events_without_end, CapacityLimits(run_bytes=2_000))
    events = await client.run(ask())
    assert outcome(events) == "RUN_LIMIT_EXCEEDED"
    assert len(events) < 25


@requirement("limit.size")
@pytest.mark.parametrize("agent", [emit_text_without_end, emit_beyond_limit])
async def test_the_text_that_exceeds_the_limit_is_the_last(connect: Connect, agent: object) -> None:
    client = await connect(agent, CapacityLimits(run_bytes=200_000))
    events = await client.run(ask())
    assert outcome(events) == "RUN_LIMIT_EXCEEDED"
    log = client.service.registry.by_key[RunKey("everybody", "t1", "r1")].log
    assert 200_000 < log.bytes < 201_000


async def talk_without_end(asked: RunAgentInput) -> AsyncIterator[Item]:
    """Yield text, and that without end if it was asked for."""
    yield "hi"
    while asked.messages[-1].content == "without end":
        yield PIECE


@requirement("limit.size", "agent.background", "protocol.same")
@pytest.mark.parametrize("serve_over", ["sse", "roz-1.0", "kontekst"], indirect=True)
async def test_a_reply_without_end_arrives_up_to_the_limit_of_a_run_while_others_are_answered(
    serve_over: ServeOver,
) -> None:
    """Read 128 MB, which take half a minute over a WebSocket, because AgentCore limits its frames in a second."""
    site = await serve_over(talk_without_end)
    endless, other = site.dialogue(), site.dialogue("other")
    await endless.begin("without end")
    await endless.first_text()
    [run] = site.service.registry.by_key.values()
    assert (await other.say("hello")).text == "hi"
    assert not run.log.has_ended
    reply = await endless.reply()
    assert (reply.end, reply.error) == (ERROR, "The run was ended because it produced too many events.")
    assert reply.code in {"RUN_LIMIT_EXCEEDED", None}
    assert 0 < run.log.bytes - CapacityLimits().run_bytes < 2 * len(PIECE)
    assert len(reply.text) == len("hi") + len(PIECE) * (len(run.log) - len(AROUND_PIECES))
    assert (await other.say("hello")).text == "hi"


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


@requirement("limit.all")
async def test_all_runs_together_exceed_what_a_server_holds_by_one_event_each(connect: Connect) -> None:
    chorus = AgentsInStep()
    client = await connect(chorus, CapacityLimits(all_bytes=100_000))
    streams = [await begin_run(client, thread=f"t{number}") for number in range(10)]
    chorus.may_speak.set()
    ends = [outcome(await stream.rest()) for stream in streams]
    assert set(ends) == {"RATE_LIMIT_EXCEEDED"}
    assert 100_000 < client.service.quota.amounts[Limit.LOG_BYTES].used < 100_000 + len(streams) * 3_000
