"""Limits of memory, of the size of runs and of open runs, the drain at shutdown, and the health of the process."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import CustomEvent, RunAgentInput

from agui_container.engine.limits import CapacityLimits, IdentityLimits
from agui_container.ports import Item, RunContext
from agui_container.ports.records import RunKey
from agui_container.run.fairness import BURST
from tests.behaviour.client import Client, Refused, begin_run, outcome, types
from tests.conftest import Connect
from tests.engine.doubles import START, ask, eventually
from tests.waiting_agent import WaitingAgent


async def emit_one_event(_: RunAgentInput) -> AsyncIterator[Item]:
    yield CustomEvent(name="n", value="x" * 1_000)


async def test_time_spent_waiting_in_line_does_not_count(connect: Connect) -> None:
    agent = WaitingAgent()
    client = await connect(agent, run_timeout=60, on_busy="enqueue")
    first = await begin_run(client)
    second = await client.start(ask(run="r2"))
    client.clock.advance(60)
    assert outcome(await first.rest()) == "RUN_TIMEOUT"
    await second.until("TEXT_MESSAGE_CONTENT")
    client.clock.advance(59)
    agent.may_end.set()
    assert outcome(await second.rest()) == "success"


@pytest.mark.wire
async def test_open_runs_are_bounded(connect: Connect) -> None:
    agent = WaitingAgent()
    client = await connect(agent, CapacityLimits(open_runs=2))
    streams = [await begin_run(client, thread=thread) for thread in ("t1", "t2")]
    with pytest.raises(Refused, match="RATE_LIMIT_EXCEEDED"):
        await client.start(ask("t3"))
    agent.may_end.set()
    assert [outcome(await stream.rest()) for stream in streams] == ["success", "success"]
    assert outcome(await client.run(ask("t3"))) == "success"


async def readable_runs(client: Client, *runs: str) -> list[str]:
    kept = []
    for run in runs:
        try:
            await client.cancel(None, run)
        except Refused as refused:
            assert refused.code == "RUN_NOT_FOUND"  # noqa: PT017 - it is not the point of the test
        else:
            kept.append(run)
    return kept


async def wait_until_unread(client: Client) -> None:
    """Wait until the server has noticed that every stream was read to its end."""
    await eventually(lambda: not any(run.readers.local for run in client.service.registry.by_key.values()))


@pytest.mark.parametrize("limits", [CapacityLimits(kept_runs=2), CapacityLimits(kept_bytes=3_300)])
async def test_the_oldest_runs_are_forgotten_first(connect: Connect, limits: CapacityLimits) -> None:
    client = await connect(emit_one_event, limits)
    for run in ("r1", "r2", "r3", "r4"):
        await client.run(ask(run=run))
        await wait_until_unread(client)
    assert await readable_runs(client, "r1", "r2", "r3", "r4") == ["r3", "r4"]


async def use_context(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    ctx.emit("hi")
    ctx.state.replace({"said": ctx.cancelled})
    yield "there"


class ContextKeeper:
    def __init__(self) -> None:
        self.kept: list[RunContext] = []

    async def run(self, _: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        self.kept.append(ctx)
        yield "hi"


@pytest.mark.parametrize("agent", [emit_one_event, use_context, ContextKeeper()])
async def test_a_run_that_is_forgotten_is_gone_without_the_garbage_collector(connect: Connect, agent: object) -> None:
    client = await connect(agent, CapacityLimits(kept_runs=1))
    gc.disable()
    try:
        await client.run(ask(run="r1"))
        run = weakref.ref(client.service.registry.by_key[RunKey("everybody", "t1", "r1")])
        await wait_until_unread(client)
        client.streams.clear()
        await client.run(ask(run="r2"))
        await eventually(lambda: run() is None)
    finally:
        gc.enable()


async def test_a_run_that_is_refused_interrupts_nothing(connect: Connect) -> None:
    agent = WaitingAgent()
    limits = IdentityLimits(runs_per_minute=2)
    client = await connect(agent, caller_limits=limits, limit_by="session", on_busy="interrupt")
    client = client.session("somebody")
    streams = [await begin_run(client, thread=thread) for thread in ("t1", "t2")]
    with pytest.raises(Refused, match="RATE_LIMIT_EXCEEDED"):
        await client.start(ask("t1", "r2"))
    agent.may_end.set()
    assert [outcome(await stream.rest()) for stream in streams] == ["success", "success"]


async def test_a_run_that_is_being_read_is_kept(connect: Connect) -> None:
    agent = WaitingAgent()
    client = await connect(agent, CapacityLimits(kept_runs=0))
    first = await begin_run(client, "r1", "t1")
    run = client.service.registry.by_key[RunKey("everybody", "t1", "r1")]
    reader = await client.service.attach(run.ctx.caller, "t1", "r1", 0)
    agent.may_end.set()
    assert outcome(await first.rest()) == "success"
    assert await readable_runs(client, "r1") == ["r1"]
    reader.close()
    await eventually(lambda: run.readers.local == 0 and not client.service.registry.lives)
    assert await readable_runs(client, "r1") == []


@pytest.mark.wire
async def test_a_drain_ends_open_and_waiting_runs(connect: Connect) -> None:
    client = await connect(WaitingAgent(), on_busy="enqueue")
    active = await begin_run(client)
    waiting = await client.start(ask(run="r2"))
    await client.service.drain(0)
    active_events, waiting_events = await active.rest(), await waiting.rest()
    assert types(active_events) == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert types(waiting_events) == ["RUN_STARTED", "RUN_ERROR"]
    assert outcome(active_events) == outcome(waiting_events) == "SHUTTING_DOWN"


async def test_within_the_grace_open_runs_end_by_themselves_and_waiting_ones_are_not_begun(
    connect: Connect,
) -> None:
    agent = WaitingAgent()
    client = await connect(agent, on_busy="enqueue")
    active = await begin_run(client)
    waiting = await client.start(ask(run="r2"))
    draining = asyncio.create_task(client.service.drain(10))
    assert outcome(await waiting.rest()) == "SHUTTING_DOWN"
    assert not draining.done()
    agent.may_end.set()
    assert outcome(await active.rest()) == "success"
    await draining


async def test_the_status_follows_the_runs_and_is_stamped_once(connect: Connect) -> None:
    agent = WaitingAgent()
    client = await connect(agent, on_busy="enqueue")
    health = client.service.health
    client.clock.advance(10)
    assert health.report() == {"status": "Healthy", "time_of_last_update": int(START)}
    first = await begin_run(client)
    client.clock.advance(10)
    second = await begin_run(client, thread="t2")
    busy = {"status": "HealthyBusy", "time_of_last_update": int(START) + 10}
    assert health.report() == busy
    await client.cancel("t1")
    await first.rest()
    client.clock.advance(10)
    assert health.report() == busy
    agent.may_end.set()
    await second.rest()
    await eventually(lambda: health.report()["status"] == "Healthy")
    assert health.report()["time_of_last_update"] == int(START) + 30


@pytest.mark.parametrize("seconds", [10_000.0, -10_000.0], ids=["forward", "back"])
async def test_a_clock_that_jumps_ends_no_run_and_no_time_is_in_the_future(connect: Connect, seconds: float) -> None:
    agent = WaitingAgent()
    client = await connect(agent, run_timeout=60)
    stream = await begin_run(client)
    client.clock.now += seconds
    (run,) = (await client.command({"command": {"type": "runs.list"}}))["runs"]
    assert (run["status"], run["seconds"]) == ("running", max(0.0, seconds))
    assert int(client.service.health.report()["time_of_last_update"]) <= client.clock.now
    agent.may_end.set()
    assert outcome(await stream.rest()) == "success"


async def test_a_forgotten_run_is_refused_and_never_run_again(connect: Connect) -> None:
    started = []

    async def agent(asked: RunAgentInput) -> AsyncIterator[Item]:
        started.append(asked.run_id)
        yield "hi"

    client = await connect(agent, CapacityLimits(kept_runs=1))
    assert outcome(await client.run(ask(run="r1"))) == "success"
    assert outcome(await client.run(ask(run="r2"))) == "success"
    with pytest.raises(Refused, match="RUN_NOT_FOUND"):
        await client.start(ask(run="r1"))
    assert started == ["r1", "r2"]


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
