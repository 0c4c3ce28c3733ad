"""Replicas on one store: queues across replicas, and lists of runs."""

import asyncio
from collections.abc import AsyncIterator

from ag_ui.core import RunAgentInput

from agui_container.engine.engine import Engine
from agui_container.ports import Item
from agui_container.ports.records import RunKey
from agui_container.protocol.errors import ErrorCode
from agui_container.settings import Settings
from tests.engine.doubles import asking, caller, envelopes, eventually, raises_code
from tests.engine.replicas import Replicas, types
from tests.engine.test_recorder import wait_until_stored
from tests.waiting_agent import WaitingAgent

ENQUEUE = Settings(on_busy="enqueue")


async def drain_services(*services: Engine) -> None:
    """Drain the services, and wait until their runs are stored."""
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
