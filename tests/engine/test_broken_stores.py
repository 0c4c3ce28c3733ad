"""Stores with unexpected exceptions: readers get an end, and stored events are sent once."""

import asyncio

import pytest

from agui_container.ports.records import RunKey
from agui_container.ports.store import LeaseLost
from agui_container.protocol.wire.envelope import Envelope
from agui_container.settings import Settings
from tests.engine.doubles import asking, caller, envelopes, eventually, forever, wait_for_event
from tests.engine.replicas import durable_store_of
from tests.engine.test_recorder import RUN, open_service, wait_until_stored


async def raise_lease_lost(*_: object) -> None:
    raise LeaseLost


async def raise_error(*_: object) -> None:
    raise RuntimeError("a row that cannot be read")


async def test_readers_of_a_run_that_was_taken_get_an_end_where_the_other_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = await open_service(forever)
    reader = await service.admit(asking(), caller())
    run = service.registry.by_key[RUN]
    await eventually(lambda: run.log.watermark)
    for name, instead in {"append": raise_lease_lost, "finish": raise_lease_lost, "run": raise_error}.items():
        monkeypatch.setattr(service.cluster.store, name, instead)
    run.ctx.emit("after")
    seen = await envelopes(reader)
    assert b"RUN_LOST" in seen[-1].data
    await wait_until_stored(service)


async def test_readers_of_a_run_that_could_not_begin_get_an_end_where_nothing_can_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = await open_service(forever, settings=Settings(on_busy="enqueue"))
    first = await service.admit(asking(), caller())
    waiting = await service.admit(asking(run="r2"), caller())
    for name in ("begin", "run"):
        monkeypatch.setattr(service.cluster.store, name, raise_error)
    service.registry.by_key[RUN].cancel()
    assert (await envelopes(first))[-1].type == "RUN_FINISHED"
    assert (await envelopes(waiting))[-1].type == "RUN_ERROR"
    await wait_until_stored(service)


async def test_stored_events_can_be_read_before_the_store_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    service, may = await open_service(forever), asyncio.Event()
    append, stored = durable_store_of(service).append, asyncio.Event()

    async def late(run: RunKey, replica: str, given: list[Envelope]) -> None:
        await append(run, replica, given)
        stored.set()
        await may.wait()

    monkeypatch.setattr(service.cluster.store, "append", late)
    first = await service.admit(asking(), caller())
    await wait_for_event(stored)
    count = len(await durable_store_of(service).envelopes(RUN, 0))
    again = await service.attach(caller(), "t1", "r1", count)  # another replica has shown them
    may.set()
    service.registry.by_key[RUN].cancel()
    whole = await envelopes(first)
    assert await envelopes(again) == whole[count:]
    await wait_until_stored(service)
