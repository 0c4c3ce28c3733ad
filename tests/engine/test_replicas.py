"""Replicas on one store: queues across replicas, and lists of runs."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput

from agui_container.engine.engine import Engine
from agui_container.ports import Item
from agui_container.ports.records import Begun, Busy, Claim, Exists, RunKey
from agui_container.ports.store import Merge
from agui_container.protocol.errors import ErrorCode
from agui_container.settings import Settings
from tests.engine.doubles import WAIT, asking, caller, envelopes, eventually, raises_code
from tests.engine.replicas import Replicas, types
from tests.engine.test_recorder import wait_until_stored
from tests.waiting_agent import WaitingAgent

ENQUEUE = Settings(on_busy="enqueue")


async def drain_services(*services: Engine) -> None:
    """Drain the services, and wait until their runs are stored."""
    for service in services:
        await service.drain(0)
        await wait_until_stored(service)


async def test_a_run_waits_for_the_run_of_another_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas, holder = Replicas(), WaitingAgent(rest="after")
    here, there = await replicas.start(holder), await replicas.start(holder, ENQUEUE)
    await here.admit(asking(run="r1"), caller())
    await eventually(lambda: holder.started_run_ids)
    begin, found = replicas.store.begin, list[Begun | Exists | Busy]()

    async def counted(claim: Claim, merge: Merge) -> Begun | Exists | Busy:
        found.append(await begin(claim, merge))
        return found[-1]

    monkeypatch.setattr(replicas.store, "begin", counted)
    waiting = asyncio.create_task(there.admit(asking(run="r2"), caller()))
    await eventually(lambda: len(found) > 1)
    assert holder.started_run_ids == ["r1"]
    holder.may_end.set()
    async with asyncio.timeout(WAIT):
        reader = await waiting
    assert types(await envelopes(reader))[-1] == "RUN_FINISHED"
    assert holder.started_run_ids == ["r1", "r2"]
    assert [type(each) for each in (found[0], found[-1])] == [Busy, Begun]
    await drain_services(here, there)


async def test_a_queued_run_keeps_the_answer_of_another_replicas_run() -> None:
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
