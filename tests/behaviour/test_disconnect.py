"""Runs whose last reader has disconnected."""

import pytest

from tests.behaviour.client import Client, begin_run, outcome, types
from tests.conftest import Connect
from tests.engine.doubles import ask, caller, eventually, wait_for_event
from tests.waiting_agent import WaitingAgent


async def status(client: Client, run: str = "r1") -> object:
    """Return the status of a run without becoming its reader."""
    return (await client.service.runs.find(caller(), "t1", run))["status"]


@pytest.mark.wire
async def test_a_run_waits_for_a_reader_and_then_ends(connect: Connect) -> None:
    agent = WaitingAgent()
    client = await connect(agent, on_disconnect="grace:30")
    await (await begin_run(client)).leave()
    client.clock.advance(29.9)
    assert await status(client) == "running"
    client.clock.advance(0.1)
    assert await status(client) == "cancelled"
    await wait_for_event(agent.cut_off)


@pytest.mark.wire
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


@pytest.mark.wire
@pytest.mark.parametrize("on_busy", ["reject", "enqueue", "interrupt"])
async def test_a_run_in_its_grace_gives_way_at_once(connect: Connect, on_busy: str) -> None:
    agent = WaitingAgent()
    client = await connect(agent, on_disconnect="grace:30", on_busy=on_busy)
    await (await begin_run(client)).leave()
    second = await begin_run(client, "r2")
    assert await status(client) == "cancelled"
    agent.may_end.set()
    assert outcome(await second.rest()) == "success"


@pytest.mark.wire
async def test_a_reader_that_leaves_another_behind_changes_nothing(connect: Connect) -> None:
    agent = WaitingAgent()
    client = await connect(agent, on_disconnect="cancel")
    first = await begin_run(client)
    second = await client.attach("t1", "r1")
    await first.leave()
    assert await status(client) == "running"
    agent.may_end.set()
    assert types(await second.rest())[-1] == "RUN_FINISHED"


async def test_an_ended_run_does_not_mind(connect: Connect) -> None:
    agent = WaitingAgent()
    agent.may_end.set()
    client = await connect(agent, on_disconnect="grace:30")
    assert outcome(await client.run(ask())) == "success"
    await eventually(lambda: not client.clock.timers)
    assert await status(client) == "finished"


@pytest.mark.wire
async def test_a_waiting_run_has_its_grace_too(connect: Connect) -> None:
    client = await connect(WaitingAgent(), on_disconnect="grace:30", on_busy="enqueue")
    first = await begin_run(client, "r1")
    await (await client.start(ask(run="r2"))).leave()
    client.clock.advance(30)
    assert (await status(client, "r1"), await status(client, "r2")) == ("running", "cancelled")
    await first.leave()
