"""Recording of a run: what is stored before readers see it, and the end that readers get in any case."""

import asyncio
import threading
from collections.abc import AsyncIterator, Collection

import pytest
from ag_ui.core import CustomEvent, RunAgentInput, StateSnapshotEvent

from agui_container.engine import inputs
from agui_container.engine.engine import Engine
from agui_container.engine.inputs import MergedInput
from agui_container.ports import Item
from agui_container.ports import store as store_port
from agui_container.ports.records import (
    Ending,
    RunKey,
    RunStatus,
    ThreadDelta,
    ThreadKey,
)
from agui_container.ports.store import Delete, Store
from agui_container.protocol.envelope import Envelope
from agui_container.replicas.leases import Leases
from agui_container.run import recorder
from agui_container.run.cluster import LEASE_SECONDS, Cluster
from agui_container.settings import Settings
from agui_container.stores.memory import MemoryStore
from agui_container.threads import LARGE_BYTES
from tests.engine.doubles import FakeClock, asking, caller, envelopes, eventually, forever, make_service, wait_for_event
from tests.engine.replicas import durable_store_of, hold_calls, leases_of, temporary_store
from tests.replicas.buses.memory_bus import MemoryBus
from tests.stores.doubles import get_run

RUN = RunKey("everybody", "t1", "r1")
THREAD = ThreadKey("everybody", "t1")


async def talker(asked: RunAgentInput) -> AsyncIterator[Item]:
    yield f"{len(asked.messages)} messages"
    yield StateSnapshotEvent(snapshot={"seen": len(asked.messages)})


async def open_service(
    agent: object,
    *,
    replica: str = "replica-1",
    store: Store | None = None,
    settings: Settings | None = None,
) -> Engine:
    """Return an engine, by default on a durable store."""
    clock = FakeClock()
    cluster = Cluster(store or temporary_store(clock), MemoryBus(), clock, new_id=lambda: replica)
    service = make_service(agent, settings, clock=clock, cluster=cluster)
    await cluster.open()
    return service


async def beat(leases: Leases) -> None:
    await leases.renew()
    await leases.reap()


async def wait_until_stored(service: Engine) -> None:
    await eventually(lambda: not service.registry.lives and not service.registry.tasks)


async def test_no_event_is_visible_before_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    service = await open_service(talker)
    store = durable_store_of(service)
    held = [hold_calls(monkeypatch, store, name) for name in ("append", "finish")]
    reader = await service.admit(asking(), caller())
    await eventually(lambda: reader.run.log.has_ended)
    assert len(reader.run.log) > 0
    assert service.registry.by_key[RUN].log.watermark == 0
    for _, may in held:
        may.set()
    seen = await envelopes(reader)
    assert [envelope.seq for envelope in await store.envelopes(RUN, 0)] == [envelope.seq for envelope in seen]
    await wait_until_stored(service)


async def test_a_burst_is_stored_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    async def burst(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(1_000):
            yield CustomEvent(name="n", value=number)

    service = await open_service(burst)
    store, writes = durable_store_of(service), []
    append, finish = store.append, store.finish

    async def counted(run: RunKey, replica: str, given: list[Envelope]) -> None:
        writes.append(len(given))
        await append(run, replica, given)

    async def last(run: RunKey, replica: str, given: list[Envelope], ending: Ending) -> None:
        writes.append(len(given))
        await finish(run, replica, given, ending)

    monkeypatch.setattr(store, "append", counted)
    monkeypatch.setattr(store, "finish", last)
    assert len(await envelopes(await service.admit(asking(), caller()))) == 1_002
    assert sum(writes) == 1_002
    assert len(writes) < 100
    await wait_until_stored(service)


@pytest.mark.parametrize(("size", "is_on_loop"), [(LARGE_BYTES, True), (LARGE_BYTES + 1, False)])
async def test_messages_of_a_large_request_are_merged_off_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, size: int, *, is_on_loop: bool
) -> None:
    service, threads = await open_service(talker), record_merges(monkeypatch)
    await envelopes(await service.admit(asking(), caller(), size))
    await wait_until_stored(service)
    assert (threads == {threading.get_ident()}) is is_on_loop


def record_merges(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Return the ids of the threads in which inputs are merged from now on."""
    threads, merge = set[int](), inputs.merge

    def record(run_input: RunAgentInput, stored: ThreadDelta, predecessors: Collection[str]) -> MergedInput:
        threads.add(threading.get_ident())
        return merge(run_input, stored, predecessors)

    monkeypatch.setattr(inputs, "merge", record)
    return threads


async def test_readers_of_a_run_that_was_taken_see_as_much_of_it_as_the_other_has_stored() -> None:
    clock = FakeClock()
    store = temporary_store(clock)

    async def holds(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "before"
        await asyncio.Event().wait()

    service = await open_service(holds, store=store)
    reader = await service.admit(asking(), caller())
    await eventually(lambda: service.registry.by_key[RUN].log.watermark)
    clock.advance(60)
    other = Cluster(store, MemoryBus(), clock, new_id=lambda: "replica-2")
    await other.open()
    leases = leases_of(make_service(forever, clock=clock, cluster=other))
    await beat(leases)
    assert not reader.run.log.has_ended  # it has just come, and says nothing of others' silence yet
    clock.advance(LEASE_SECONDS)
    await beat(leases)
    run = service.registry.by_key[RUN]
    run.ctx.emit("after")
    seen = await envelopes(reader)
    kept = list(await store.envelopes(RUN, 0))
    assert (seen[:-1], seen[-1].seq, seen[-1].type) == (kept[:-1], kept[-1].seq, kept[-1].type)
    assert [event.type.value for event in seen][-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert b"RUN_LOST" in seen[-1].data
    record = await get_run(store, RUN)
    assert (record.status, record.replica) == (RunStatus.ERROR, "replica-2")
    await wait_until_stored(service)
    assert service.readings()["agui.limit.used"]["logBytes"] == run.log.bytes


async def test_readers_of_a_run_whose_thread_was_deleted_see_the_end_that_it_has_here() -> None:
    service = await open_service(forever)
    reader = await service.admit(asking(), caller())
    run = service.registry.by_key[RUN]
    await eventually(lambda: run.log.watermark)
    await service.cluster.store.edit(THREAD, Delete())
    run.ctx.emit("after")
    seen = await envelopes(reader)
    assert [event.type.value for event in seen] == ["RUN_STARTED", "RUN_ERROR"]
    assert b"The thread of this run was deleted." in seen[-1].data
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


END_TYPES = ["TEXT_MESSAGE_END", "RUN_FINISHED"]


async def open_held(patch: pytest.MonkeyPatch, kind: str) -> tuple[Engine, asyncio.Event, asyncio.Event]:
    """Return an engine on a store of a kind that holds the ends of runs, and the events of ``hold_calls``.

    A store in memory stands for that which writes turns to a service.
    """
    store = temporary_store(FakeClock()) if kind == "durable" else MemoryStore()
    vars(store).update(writes_turns=kind == "turns")
    service = await open_service(speaker, store=store)
    return service, *hold_calls(patch, store, "finish")


async def speaker(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "hello"
    await asyncio.sleep(0)


def status_of(service: Engine) -> object:
    return service.health.report()["status"]


@pytest.mark.parametrize("kind", ["memory", "turns", "durable"])
async def test_the_process_is_busy_until_the_end_is_written(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    service, is_finishing, may_finish = await open_held(monkeypatch, kind)
    reader = await service.admit(asking(), caller())
    await wait_for_event(is_finishing)
    assert reader.run.log.has_ended
    assert status_of(service) == "HealthyBusy"
    may_finish.set()
    assert [it.type for it in await envelopes(reader)][-2:] == END_TYPES
    await eventually(lambda: status_of(service) == "Healthy")


async def test_readers_get_the_end_of_a_turn_after_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    service, is_finishing, may_finish = await open_held(monkeypatch, "turns")
    first = await service.admit(asking(), caller())
    await wait_for_event(is_finishing)
    second = await service.attach(caller(), "t1", "r1", 0)
    for reader in (first, second):
        seen = [it.type for it in (await anext(reader)).envelopes()]
        assert seen == ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    rest = [asyncio.create_task(envelopes(reader)) for reader in (first, second)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert not any(reading.done() for reading in rest)
    may_finish.set()
    assert [[it.type for it in await reading] for reading in rest] == [["RUN_FINISHED"], ["RUN_FINISHED"]]


async def test_readers_get_the_end_of_a_turn_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("a service that fails")

    service, *_ = await open_held(monkeypatch, "turns")
    monkeypatch.setattr(service.cluster.store, "finish", fail)
    reader = await service.admit(asking(), caller())
    assert [it.type for it in await envelopes(reader)][-2:] == END_TYPES


async def test_readers_get_the_end_of_a_turn_while_its_write_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_port, "GIVE_UP_SECONDS", 0.0)
    service, _, may_finish = await open_held(monkeypatch, "turns")
    reader = await service.admit(asking(), caller())
    assert [it.type for it in await envelopes(reader)][-2:] == END_TYPES
    assert status_of(service) == "HealthyBusy"
    may_finish.set()
    await eventually(lambda: status_of(service) == "Healthy")


@pytest.mark.parametrize("closing_fails", [False, True])
async def test_readers_get_an_end_where_the_recording_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, closing_fails: bool
) -> None:
    service, *_ = await open_held(monkeypatch, "durable")
    monkeypatch.setattr(recorder, "WINDOW_SECONDS", "a fault in the program")
    if closing_fails:
        monkeypatch.setattr(recorder, "RunSequence", None)
    reader = await service.admit(asking(), caller())
    seen = await envelopes(reader)
    assert (seen[0].type, seen[-1].type) == ("RUN_STARTED", "RUN_ERROR")
    assert [it.seq for it in seen] == list(range(1, len(seen) + 1))
    assert b"STORE_UNAVAILABLE" in seen[-1].data
    assert "run recording failed run=r1" in caplog.text
    await eventually(lambda: status_of(service) == "Healthy")
