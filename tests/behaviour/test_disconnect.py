"""Runs whose last reader has disconnected."""

import asyncio

import pytest

from tests.behaviour.client import Client, Refused, begin_run, outcome, types
from tests.behaviour.over_platform import leaving_is_not_noticed
from tests.conftest import Connect
from tests.engine.doubles import WAIT, ask, caller, eventually, wait_for_event
from tests.requirements import requirement
from tests.waiting_agent import WaitingAgent

pytestmark = pytest.mark.durable


async def status(client: Client, run: str = "r1") -> object:
    """Return the status of a run without becoming its reader."""
    return (await client.service.runs.find(caller(), "t1", run))["status"]


@requirement("drop.cancel")
@pytest.mark.parametrize("policy", ["cancel", "grace:0"])
@leaving_is_not_noticed
async def test_a_run_may_end_with_its_last_reader(connect: Connect, policy: str) -> None:
    agent = WaitingAgent()
    client = await connect(agent, on_disconnect=policy)
    await (await begin_run(client)).leave()
    assert await status(client) == "cancelled"
    await wait_for_event(agent.cut_off)


@requirement("drop.continue")
@leaving_is_not_noticed
async def test_a_run_may_go_on_without_readers(connect: Connect) -> None:
    agent = WaitingAgent()
    client = await connect(agent, on_disconnect="continue")
    await (await begin_run(client)).leave()
    client.clock.advance(3_000)
    assert await status(client) == "running"
    agent.may_end.set()
    async with asyncio.timeout(WAIT):
        while await status(client) == "running":  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0)
    assert await status(client) == "finished"
    assert outcome(await (await client.attach("t1", "r1")).rest()) == "success"


@requirement("drop.continue")
@leaving_is_not_noticed
async def test_a_run_that_may_go_on_without_readers_gives_way_to_nobody(connect: Connect) -> None:
    agent = WaitingAgent()
    client = await connect(agent, on_disconnect="continue")
    await (await begin_run(client)).leave()
    with pytest.raises(Refused, match="THREAD_BUSY"):
        await client.start(ask(run="r2"))
    assert await status(client) == "running"
    agent.may_end.set()


@requirement("drop.grace")
@leaving_is_not_noticed
async def test_a_run_waits_for_a_reader_and_then_ends(connect: Connect) -> None:
    agent = WaitingAgent()
    client = await connect(agent, on_disconnect="grace:30")
    await (await begin_run(client)).leave()
    client.clock.advance(29.9)
    assert await status(client) == "running"
    client.clock.advance(0.1)
    assert await status(client) == "cancelled"
    await wait_for_event(agent.cut_off)


@requirement("drop.returns")
@leaving_is_not_noticed
async def test_a_reader_that_comes_back_keeps_the_run(connect: Connect) -> None:
    agent = WaitingAgent()
    client = await connect(agent, on_disconnect="grace:30")
    await (await begin_run(client)).leave()
    client.clock.advance(20)
    stream = await client.attach("t1", "r1")
    client.clock.advance(60)
    assert await status(client) == "running"
    agent.may_end.set()
    assert outcome(await stream.rest()) == "success"


@requirement("drop.returns")
@leaving_is_not_noticed
async def test_the_grace_begins_anew_each_time(connect: Connect) -> None:
    client = await connect(WaitingAgent(), on_disconnect="grace:30")
    await (await begin_run(client)).leave()
    client.clock.advance(20)
    stream = await client.attach("t1", "r1", 3)
    await stream.leave()
    client.clock.advance(20)
    assert await status(client) == "running"
    client.clock.advance(10)
    assert await status(client) == "cancelled"


@requirement("drop.gives-way")
@pytest.mark.parametrize("on_busy", ["reject", "enqueue", "interrupt"])
@leaving_is_not_noticed
async def test_a_run_in_its_grace_gives_way_at_once(connect: Connect, on_busy: str) -> None:
    agent = WaitingAgent()
    client = await connect(agent, on_disconnect="grace:30", on_busy=on_busy)
    await (await begin_run(client)).leave()
    second = await begin_run(client, "r2")
    assert await status(client) == "cancelled"
    agent.may_end.set()
    assert outcome(await second.rest()) == "success"


@requirement("drop.others")
@leaving_is_not_noticed
async def test_a_reader_that_leaves_another_behind_changes_nothing(connect: Connect) -> None:
    agent = WaitingAgent()
    client = await connect(agent, on_disconnect="cancel")
    first = await begin_run(client)
    second = await client.attach("t1", "r1")
    await first.leave()
    assert await status(client) == "running"
    agent.may_end.set()
    assert types(await second.rest())[-1] == "RUN_FINISHED"


@requirement("drop.continue")
async def test_an_ended_run_does_not_mind(connect: Connect) -> None:
    agent = WaitingAgent()
    agent.may_end.set()
    client = await connect(agent, on_disconnect="grace:30")
    assert outcome(await client.run(ask())) == "success"
    await eventually(lambda: not client.clock.timers)
    assert await status(client) == "finished"


@requirement("drop.grace")
@leaving_is_not_noticed
async def test_a_waiting_run_has_its_grace_too(connect: Connect) -> None:
    client = await connect(WaitingAgent(), on_disconnect="grace:30", on_busy="enqueue")
    first = await begin_run(client, "r1")
    await (await client.start(ask(run="r2"))).leave()
    client.clock.advance(30)
    assert (await status(client, "r1"), await status(client, "r2")) == ("running", "cancelled")
    await first.leave()
