"""Stores with unexpected exceptions: readers get an end, and stored events are sent once."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput

from agui_container.engine.persistence.recorder import RunRecorder
from agui_container.ports import Item
from agui_container.ports.records import RunKey
from agui_container.ports.store import LeaseLost
from agui_container.protocol.wire.envelope import Batch, Envelope
from agui_container.settings import Settings
from tests.engine.doubles import asking, caller, envelopes, eventually, forever, wait_for_event
from tests.engine.test_recorder import RUN, open_service, wait_until_stored
from tests.requirements import requirement


async def raise_lease_lost(*_: object) -> None:
    raise LeaseLost


async def raise_error(*_: object) -> None:
    raise RuntimeError("a row that cannot be read")


@requirement("replica.lost")
async def test_readers_of_a_run_that_was_taken_get_an_end_where_the_other_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = await open_service(forever)
    reader = await service.admit(asking(), caller())
    run = service.registry.by_key[RUN]
    await eventually(lambda: run.log.watermark)
    for name, instead in {"append": raise_lease_lost, "finish": raise_lease_lost, "get": raise_error}.items():
        monkeypatch.setattr(service.cluster.store.runs, name, instead)
    run.ctx.emit("after")
    seen = await envelopes(reader)
    assert b"RUN_LOST" in seen[-1].data
    await wait_until_stored(service)


@requirement("durable.gone")
async def test_readers_of_a_run_that_could_not_begin_get_an_end_where_nothing_can_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = await open_service(forever, settings=Settings(on_busy="enqueue"))
    first = await service.admit(asking(), caller())
    waiting = await service.admit(asking(run="r2"), caller())
    for name in ("claim", "get"):
        monkeypatch.setattr(service.cluster.store.runs, name, raise_error)
    service.registry.by_key[RUN].cancel()
    assert (await envelopes(first))[-1].type == "RUN_FINISHED"
    assert (await envelopes(waiting))[-1].type == "RUN_ERROR"
    await wait_until_stored(service)


class BatchSizes:
    """A reader that records the size of each batch."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def push(self, batch: Batch) -> bool:
        self.sizes.append(len(batch.data))
        return True


def is_idle(recorder: RunRecorder | None) -> bool:
    """Return True if the recorder waits for events to store."""
    return recorder is not None and recorder.is_idle


@requirement("durable.batches")
async def test_the_end_of_a_run_joins_the_last_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = asyncio.Event()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for _number in range(5):
            yield "word "
            await asyncio.sleep(0)  # the first is stored together with the others
        await may_end.wait()

    service = await open_service(agent)
    runs, asked = service.cluster.store.runs, list[int]()
    append = runs.append

    async def counted(run: RunKey, replica: str, given: list[Envelope]) -> None:
        asked.append(len(given))
        await append(run, replica, given)

    monkeypatch.setattr(runs, "append", counted)
    reader, writer = await service.admit(asking(), caller()), BatchSizes()
    reader.push_to(writer.push)
    reading = asyncio.create_task(envelopes(reader))
    await eventually(lambda: sum(asked) == 7)
    await eventually(lambda: is_idle(service.registry.by_key[RUN].recorder))
    may_end.set()
    rest = await reading
    assert 0 not in writer.sizes
    assert sum(writer.sizes) + len(rest) == 9
    await wait_until_stored(service)


@requirement("attach.after")
async def test_stored_events_can_be_read_before_the_store_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    service, may = await open_service(forever), asyncio.Event()
    append, stored = service.cluster.store.runs.append, asyncio.Event()

    async def late(run: RunKey, replica: str, given: list[Envelope]) -> None:
        await append(run, replica, given)
        stored.set()
        await may.wait()

    monkeypatch.setattr(service.cluster.store.runs, "append", late)
    first = await service.admit(asking(), caller())
    await wait_for_event(stored)
    count = len(await service.cluster.store.runs.envelopes(RUN, 0))
    again = await service.attach(caller(), "t1", "r1", count)  # another replica has shown them
    may.set()
    service.registry.by_key[RUN].cancel()
    whole = await envelopes(first)
    assert await envelopes(again) == whole[count:]
    await wait_until_stored(service)
