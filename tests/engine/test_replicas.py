"""Replicas on one store: queues across replicas, and runs that wait as other replicas see them."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput

from agui_container.engine.engine import Engine
from agui_container.ports import Item
from agui_container.ports.records import RunKey
from agui_container.protocol.errors import ErrorCode
from agui_container.run.subscription import Subscription
from agui_container.settings import Settings
from agui_core.commands import ThreadsDelete
from tests.engine.doubles import answer_of, asking, caller, envelopes, eventually, raises_code, status
from tests.engine.replicas import Replicas, leases_of, types
from tests.run.test_recorder import wait_until_stored
from tests.waiting_agent import WaitingAgent

ENQUEUE = Settings(on_busy="enqueue")


async def drain_services(*services: Engine) -> None:
    for service in services:
        await service.drain(0)
        await wait_until_stored(service)


async def test_a_run_waits_for_the_run_of_another_replica_and_keeps_its_answer() -> None:
    replicas, holder, heard = Replicas(), WaitingAgent(rest="after"), list[str]()

    async def hears(asked: RunAgentInput) -> AsyncIterator[Item]:
        heard.extend(message.id for message in asked.messages)
        yield "done"

    here, there = await replicas.start(holder), await replicas.start(hears, ENQUEUE)
    await here.admit(asking(run="r1"), caller())
    await eventually(lambda: holder.started_run_ids)
    sent = [{"id": key, "role": "user", "content": key} for key in ("u1", "u2")]  # what a client has seen till then
    waiting = asyncio.create_task(there.admit(asking(run="r2", messages=sent), caller()))
    await eventually(lambda: there.registry.by_key)
    run = there.registry.by_key[RunKey("everybody", "t1", "r2")]
    await eventually(lambda: run.predecessors)
    holder.may_end.set()
    await envelopes(await waiting)
    first, answer, second = heard
    assert (first, second) == ("u1", "u2")
    assert answer not in {"u1", "u2"}
    await drain_services(here, there)


async def test_a_run_that_nobody_reads_gives_way_to_a_new_run_of_its_own_replica_only() -> None:
    replicas, holder = Replicas(), WaitingAgent(rest="after")
    here, there = await replicas.start(holder), await replicas.start(holder)
    (await here.admit(asking(run="r1"), caller())).close()
    await eventually(lambda: holder.started_run_ids)
    with raises_code(ErrorCode.THREAD_BUSY):
        await there.admit(asking(run="r2"), caller())
    holder.may_end.set()
    assert types(await envelopes(await here.admit(asking(run="r3"), caller())))[-1] == "RUN_FINISHED"
    assert holder.started_run_ids == ["r1", "r3"]
    await drain_services(here, there)


class Waiting:
    """A run that is active and one that waits for it on the same replica, and another replica."""

    def __init__(self) -> None:
        self.replicas, self.agent = Replicas(), WaitingAgent(rest="after")

    async def begin(self) -> tuple[Engine, Engine, Subscription, Subscription]:
        here = await self.replicas.start(self.agent, ENQUEUE)
        there = await self.replicas.start(self.agent, Settings(on_busy="interrupt"))
        first = await here.admit(asking(), caller())
        await eventually(lambda: self.agent.started_run_ids)
        second = await here.admit(asking(run="r2"), caller())
        return here, there, first, second


@pytest.fixture
async def waiting() -> Waiting:
    return Waiting()


async def test_another_replica_shows_a_run_that_waits_and_reads_it_to_its_end(waiting: Waiting) -> None:
    here, there, _, second = await waiting.begin()
    assert (await there.runs.find(caller(), "t1", "r2"))["status"] == "queued"
    assert (await there.runs.find(caller(), "t1", None))["runId"] == "r1"
    assert {str(run["runId"]): run["status"] for run in await there.runs.list(caller())} == {
        "r1": "running",
        "r2": "queued",
    }
    reading = asyncio.create_task(envelopes(await there.attach(caller(), "t1", "r2", 0)))
    waiting.agent.may_end.set()
    assert types(await envelopes(second))[-1] == "RUN_FINISHED"
    assert types(await reading) == types(await envelopes(second)) or types(await reading)[-1] == "RUN_FINISHED"
    await wait_until_stored(here)


async def test_a_run_of_another_replica_takes_the_place_of_all_runs_of_its_thread(waiting: Waiting) -> None:
    here, there, first, second = await waiting.begin()
    leases = asyncio.create_task(leases_of(here).run())
    third = await there.admit(asking(run="r3"), caller())
    assert [status(reader) for reader in (first, second)] == ["cancelled", "cancelled"]
    waiting.agent.may_end.set()
    assert types(await envelopes(third))[-1] == "RUN_FINISHED"
    assert waiting.agent.started_run_ids == ["r1", "r3"]
    leases.cancel()
    await asyncio.wait([leases])
    await wait_until_stored(here)
    await wait_until_stored(there)


async def test_a_run_that_waits_ends_when_its_thread_is_gone(waiting: Waiting) -> None:
    """The replica that deletes the thread cannot reach the one whose run waits."""
    here, there, first, second = await waiting.begin()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agui_container.engine.threads.CANCEL_SECONDS", 0.0)
        await answer_of(there.threads, ThreadsDelete(thread_id="t1"))
    await leases_of(here).renew()
    for reader in (first, second):
        assert b"The thread of this run was deleted." in (await envelopes(reader))[-1].data
    await wait_until_stored(here)
    assert waiting.agent.started_run_ids == ["r1"]
    assert await waiting.replicas.store.thread(RunKey("everybody", "t1", "r1").thread) is None


async def test_a_run_that_waits_is_cancelled_by_another_replica_which_lists_it(waiting: Waiting) -> None:
    here, there, first, second = await waiting.begin()
    assert (await there.runs.cancel(caller(), "t1", "r2"))["status"] == "queued"
    await leases_of(here).renew()
    assert types(await envelopes(second)) == ["RUN_STARTED", "RUN_FINISHED"]
    assert status(second) == "cancelled"
    waiting.agent.may_end.set()
    assert types(await envelopes(first))[-1] == "RUN_FINISHED"
    await wait_until_stored(here)
    assert waiting.agent.started_run_ids == ["r1"]
    listed = {str(run["runId"]): run["status"] for run in await there.runs.list(caller())}
    assert listed == {"r1": "finished", "r2": "cancelled"}
