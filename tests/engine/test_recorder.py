"""Recording of a run: content, times, and runs whose store does not answer."""

import asyncio
import threading
from collections.abc import AsyncIterator, Collection
from typing import Any

import pytest
from ag_ui.core import CustomEvent, EventType, RunAgentInput, StateSnapshotEvent

from agui_container.engine.engine import Engine
from agui_container.engine.persistence import merged_input, recorder
from agui_container.engine.persistence.cluster import LEASE_SECONDS, Cluster, ReplicaCommand, encode_command
from agui_container.engine.persistence.leases import Leases
from agui_container.engine.persistence.merged_input import MergedInput
from agui_container.ports import Item
from agui_container.ports.records import (
    Claim,
    Ending,
    RunKey,
    RunStatus,
    ThreadDelta,
    ThreadKey,
    ThreadStatus,
)
from agui_container.ports.store import StoreUnavailable
from agui_container.protocol.errors import ErrorCode
from agui_container.protocol.wire.envelope import Envelope
from agui_container.runtime.offload import LARGE_BYTES
from agui_container.settings import Settings
from agui_container.stores.memory import MemoryStore
from tests.buses.memory_bus import MemoryBus
from tests.engine.doubles import FakeClock, asking, caller, envelopes, eventually, forever, make_service, raises_code
from tests.requirements import requirement

RUN = RunKey("everybody", "t1", "r1")
THREAD = ThreadKey("everybody", "t1")


async def talker(asked: RunAgentInput) -> AsyncIterator[Item]:
    """Yield the number of messages and a state."""
    yield f"{len(asked.messages)} messages"
    yield StateSnapshotEvent(snapshot={"seen": len(asked.messages)})


async def open_service(
    agent: object,
    *,
    replica: str = "replica-1",
    store: MemoryStore | None = None,
    settings: Settings | None = None,
) -> Engine:
    """Return an engine on a store that counts as durable for events and ends."""
    clock = FakeClock()
    cluster = Cluster(store or MemoryStore(), MemoryBus(), clock, durable=True, new_id=lambda: replica)
    service = make_service(agent, settings, clock=clock, cluster=cluster)
    await cluster.open()
    return service


async def beat(leases: Leases) -> None:
    """Run each periodic job of a replica once."""
    await leases.renew()
    await leases.reap()


async def wait_until_stored(service: Engine) -> None:
    """Wait until everything is written."""
    await eventually(lambda: not service.registry.recorder_tasks and not service.registry.tasks)


@requirement("durable.first")
async def test_no_event_is_visible_before_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    service = await open_service(talker)
    runs, may = service.cluster.store.runs, asyncio.Event()
    finish = runs.finish

    async def later(run: RunKey, replica: str, given: list[Envelope], ending: Ending) -> None:
        await may.wait()
        await finish(run, replica, given, ending)

    monkeypatch.setattr(runs, "append", later)
    monkeypatch.setattr(runs, "finish", later)
    reader = await service.admit(asking(), caller())
    await eventually(lambda: reader.run.log.has_ended)
    assert len(reader.run.log) > 0
    assert service.registry.by_key[RUN].log.watermark == 0
    may.set()
    seen = await envelopes(reader)
    assert [envelope.seq for envelope in await runs.envelopes(RUN, 0)] == [envelope.seq for envelope in seen]
    await wait_until_stored(service)


@requirement("durable.batches")
async def test_a_burst_is_stored_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    async def burst(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(1_000):
            yield CustomEvent(name="n", value=number)

    service = await open_service(burst)
    runs, writes = service.cluster.store.runs, []
    append, finish = runs.append, runs.finish

    async def counted(run: RunKey, replica: str, given: list[Envelope]) -> None:
        writes.append(len(given))
        await append(run, replica, given)

    async def last(run: RunKey, replica: str, given: list[Envelope], ending: Ending) -> None:
        writes.append(len(given))
        await finish(run, replica, given, ending)

    monkeypatch.setattr(runs, "append", counted)
    monkeypatch.setattr(runs, "finish", last)
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


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [{"id": "u1", "role": "user", "content": LARGE_BYTES * "x"}]},
        {"state": {"text": LARGE_BYTES * "x"}},
    ],
    ids=["messages", "state"],
)
async def test_a_small_request_is_merged_with_a_large_thread_off_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    async def short(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "short"

    service = await open_service(short)
    await envelopes(await service.admit(asking(**fields), caller()))
    await wait_until_stored(service)
    threads = record_merges(monkeypatch)
    later = asking(run="r2", messages=[{"id": "u2", "role": "user", "content": "more"}])
    await envelopes(await service.admit(later, caller()))
    await wait_until_stored(service)
    assert threads
    assert threading.get_ident() not in threads


def record_merges(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Return the ids of the threads in which inputs are merged from now on."""
    threads, merge = set[int](), merged_input.merge

    def record(run_input: RunAgentInput, stored: ThreadDelta, predecessors: Collection[str]) -> MergedInput:
        threads.add(threading.get_ident())
        return merge(run_input, stored, predecessors)

    monkeypatch.setattr(merged_input, "merge", record)
    return threads


@requirement("durable.thread")
async def test_a_run_leaves_messages_state_and_a_title_to_its_thread() -> None:
    service = await open_service(talker)
    await envelopes(await service.admit(asking(), caller()))
    await wait_until_stored(service)
    kept = await service.cluster.store.threads.changes(THREAD)
    assert kept is not None
    assert [message.id for message in kept.messages] == ["u1", "id-1"]
    assert (kept.state, kept.thread.title, kept.thread.status) == (b'{"seen":1}', "hi", ThreadStatus.USER_TURN)
    later = asking(run="r2", messages=[{"id": "u2", "role": "user", "content": "more"}])
    said = b"".join(envelope.data for envelope in await envelopes(await service.admit(later, caller())))
    assert b"3 messages" in said
    await wait_until_stored(service)


@requirement("durable.gone")
async def test_a_store_that_does_not_answer_refuses_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    service = await open_service(talker)

    async def gone(*_: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(service.cluster.store.runs, "claim", gone)
    with raises_code(ErrorCode.STORE_UNAVAILABLE):
        await service.admit(asking(), caller())
    monkeypatch.undo()
    assert (await envelopes(await service.admit(asking(), caller())))[-1].type == "RUN_FINISHED"
    await wait_until_stored(service)


@requirement("durable.gone")
async def test_a_store_that_goes_away_ends_the_run_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "GIVE_UP_SECONDS", 0.05)
    held = asyncio.Event()

    async def holds(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "before"
        await held.wait()

    async def gone(*_: object) -> None:
        raise StoreUnavailable("gone")

    service = await open_service(holds)
    monkeypatch.setattr(service.cluster.store.runs, "append", gone)
    monkeypatch.setattr(service.cluster.store.runs, "finish", gone)
    seen = await envelopes(await service.admit(asking(), caller()))
    assert seen[-1].type == "RUN_ERROR"
    assert b"STORE_UNAVAILABLE" in seen[-1].data
    await wait_until_stored(service)


@requirement("replica.lost")
async def test_readers_of_a_run_that_was_taken_see_the_end_that_the_other_wrote() -> None:
    store = MemoryStore()

    async def holds(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "before"
        await asyncio.Event().wait()

    service = await open_service(holds, store=store)
    reader = await service.admit(asking(), caller())
    await eventually(lambda: service.registry.by_key[RUN].log.watermark)
    clock = FakeClock()
    clock.advance(60)
    other = Cluster(store, MemoryBus(), clock, durable=True, new_id=lambda: "replica-2")
    await other.open()
    leases = make_service(forever, clock=clock, cluster=other).leases
    await beat(leases)
    assert not reader.run.log.has_ended  # it has just come, and says nothing of others' silence yet
    clock.advance(LEASE_SECONDS)
    await beat(leases)
    service.registry.by_key[RUN].ctx.emit("after")
    seen = await envelopes(reader)
    assert seen == list(await store.runs.envelopes(RUN, 0))
    assert [event.type.value for event in seen][-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert b"RUN_LOST" in seen[-1].data
    record = await store.runs.get(RUN)
    assert record is not None
    assert (record.status, record.replica) == (RunStatus.ERROR, "replica-2")
    await wait_until_stored(service)


@requirement("replica.lost")
async def test_readers_of_a_run_whose_thread_was_deleted_see_the_end_that_it_has_here() -> None:
    service = await open_service(forever)
    reader = await service.admit(asking(), caller())
    run = service.registry.by_key[RUN]
    await eventually(lambda: run.log.watermark)
    await service.cluster.store.threads.delete(THREAD)
    run.ctx.emit("after")
    seen = await envelopes(reader)
    assert [event.type.value for event in seen] == ["RUN_STARTED", "RUN_ERROR"]
    assert b"RUN_LOST" in seen[-1].data
    await wait_until_stored(service)


@requirement("replica.lost")
@pytest.mark.parametrize("data", [b"no JSON", b'{"type":"TEXT_MESSAGE_END","messageId":"m"}'])
async def test_a_run_whose_events_cannot_be_read_ends_too(data: bytes) -> None:
    store, clock = MemoryStore(), FakeClock()
    cluster = Cluster(store, MemoryBus(), clock, durable=True, new_id=lambda: "replica-2")
    await cluster.open()
    await store.runs.claim(Claim(RUN, "replica-1", clock.time(), clock.time()))
    await store.runs.append(RUN, "replica-1", [Envelope("r1", 1, EventType.CUSTOM, data)])
    leases = make_service(forever, clock=clock, cluster=cluster).leases
    for _ in range(2):
        await beat(leases)
        clock.advance(LEASE_SECONDS)
    last = (await store.runs.envelopes(RUN, 1))[-1]
    assert (last.seq, last.type) == (2, EventType.RUN_ERROR)
    thread = await store.threads.get(THREAD)
    assert thread is not None
    assert thread.active_run is None


@requirement("replica.cancel")
async def test_a_command_that_cannot_be_read_harms_nothing() -> None:
    service = await open_service(forever)
    reader = await service.admit(asking(), caller())
    cluster, keeping = service.cluster, asyncio.create_task(service.leases.run())
    for command in (
        b"no JSON",
        b"1",
        b'["a"]',
        b'["dance","everybody","t1","r1"]',
        encode_command(ReplicaCommand.CANCEL, RUN),
    ):
        await cluster.bus.send(cluster.replica, command)
    assert b'"cancelled"' in (await envelopes(reader))[-1].data
    keeping.cancel()
    await asyncio.wait([keeping])
    await wait_until_stored(service)


@requirement("durable.gone")
async def test_an_end_that_could_not_be_written_is_written_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "GIVE_UP_SECONDS", 0.05)

    async def gone(*_: object) -> None:
        raise StoreUnavailable("gone")

    service = await open_service(talker)
    runs = service.cluster.store.runs
    with monkeypatch.context() as patched:
        patched.setattr(runs, "append", gone)
        patched.setattr(runs, "finish", gone)
        await envelopes(await service.admit(asking(), caller()))
        await wait_until_stored(service)
    leases = service.leases
    await beat(leases)
    record = await runs.get(RUN)
    assert record is not None
    assert record.status is RunStatus.ERROR
    assert (await envelopes(await service.admit(asking(run="r2"), caller())))[-1].type == "RUN_FINISHED"
    await beat(leases)
    await wait_until_stored(service)
