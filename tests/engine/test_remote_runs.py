"""Runs of other replicas: the cost of a reader, and errors when the store or the bus fails."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import pytest
from pydantic_core import from_json

from agui_container.engine.engine import Engine
from agui_container.engine.persistence import remote_run
from agui_container.ports.bus import BusUnavailable
from agui_container.ports.records import AlreadyExists, Claim, Claimed, RunKey, RunRecord, ThreadBusy
from agui_container.ports.store import StoreUnavailable
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.wire.envelope import Envelope
from tests.engine.doubles import WAIT, asking, caller, envelopes, eventually, raises_code, status, wait_for_event
from tests.engine.replicas import Replicas, hello, types
from tests.engine.test_recorder import RUN, talker, wait_until_stored
from tests.requirements import requirement


async def open_run() -> tuple[Replicas, Engine, Engine]:
    """Return two replicas, and a run that is active on the first."""
    replicas = Replicas()
    here, there = await replicas.start(hello), await replicas.start(hello)
    await here.admit(asking(), caller())
    await eventually(lambda: here.registry.by_key[RUN].log.watermark == 3)
    return replicas, here, there


@requirement("replica.watched")
async def test_a_reader_elsewhere_holds_up_the_grace_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_run, "WATCH_SECONDS", 0.0)
    monkeypatch.setattr(remote_run, "SILENCE_SECONDS", 0.001)
    replicas = Replicas()
    here, there = await replicas.start(hello), await replicas.start(hello)
    lease_task = asyncio.create_task(here.leases.run())
    (await here.admit(asking(), caller())).close()
    run = here.registry.by_key[RUN]
    await eventually(lambda: run.log.watermark == 3)
    before = run.presence.grace
    reading = asyncio.create_task(envelopes(await there.attach(caller(), "t1", "r1", 0)))
    await eventually(lambda: run.presence.grace is not before)
    replicas.clock.advance(29)
    after = run.presence.grace
    await eventually(lambda: run.presence.grace is not after)
    replicas.clock.advance(29)
    assert not run.log.has_ended
    run.cancel()
    assert types(await reading)[-1] == "RUN_FINISHED"
    lease_task.cancel()
    await asyncio.wait([lease_task])
    await wait_until_stored(here)


@requirement("replica.watched", "drop.returns")
async def test_a_word_of_a_reader_elsewhere_ends_no_run_that_is_read_here_again() -> None:
    replicas = Replicas()
    here = await replicas.start(hello)
    (await here.admit(asking(), caller())).close()
    reader = await here.attach(caller(), "t1", "r1", 0)
    here.readers.remote_reader_seen(RUN, "somebody")
    replicas.clock.advance(60)
    assert status(reader) == "running"
    reader.run.cancel()
    await envelopes(reader)
    await wait_until_stored(here)


@requirement("replica.read")
async def test_a_reader_elsewhere_reads_on_when_the_store_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas, here, there = await open_run()
    reader = await there.attach(caller(), "t1", "r1", 0)
    runs, failures = replicas.store.runs, iter(range(3))
    read = runs.envelopes

    async def flaky(key: RunKey, after: int) -> Sequence[Envelope]:
        if next(failures, None) is not None:
            raise StoreUnavailable("a moment")
        return await read(key, after)

    monkeypatch.setattr(runs, "envelopes", flaky)
    here.registry.by_key[RUN].cancel()
    assert types(await envelopes(reader)) == types(await read(RUN, 0))
    assert next(failures, None) is None
    await wait_until_stored(here)


@requirement("replica.read", "durable.gone")
async def test_a_reader_elsewhere_is_told_when_the_store_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_run, "GIVE_UP_SECONDS", 0.05)
    replicas, here, there = await open_run()
    reader = await there.attach(caller(), "t1", "r1", 0)

    async def gone(*_: object) -> None:
        raise StoreUnavailable("gone")

    with monkeypatch.context() as patched:
        patched.setattr(replicas.store.runs, "envelopes", gone)
        with pytest.raises(AppError) as told:
            await envelopes(reader)
    assert told.value.code is ErrorCode.STORE_UNAVAILABLE
    await here.drain(0)
    await wait_until_stored(here)


@requirement("replica.read")
async def test_a_bus_that_is_gone_costs_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def gone(*_: object) -> AsyncIterator[Sequence[Envelope]]:
        asked.append(asyncio.get_running_loop().time())
        raise BusUnavailable("gone")
        yield []

    replicas, here, there = await open_run()
    monkeypatch.setattr(replicas.bus, "follow", gone)
    reading = asyncio.create_task(envelopes(await there.attach(caller(), "t1", "r1", 0)))
    await eventually(lambda: len(asked) == 4)
    pauses = [later - sooner for sooner, later in pairwise(asked)]
    assert pauses[0] >= remote_run.SILENCE_SECONDS
    assert pauses[2] >= 2 * remote_run.SILENCE_SECONDS
    here.registry.by_key[RUN].cancel()
    assert types(await reading)[-1] == "RUN_FINISHED"
    await wait_until_stored(here)


@requirement("replica.read")
async def test_a_reader_elsewhere_whose_run_is_deleted_gets_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_run, "SILENCE_SECONDS", 0.001)
    replicas, here, there = await open_run()
    reader = aiter(await there.attach(caller(), "t1", "r1", 0))
    seen = (await anext(reader)).envelopes()
    await replicas.store.threads.delete(RUN.thread)
    async with asyncio.timeout(WAIT):
        seen += [envelope async for batch in reader for envelope in batch.envelopes()]
    assert [envelope.seq for envelope in seen] == [1, 2, 3, 4]
    last = from_json(seen[-1].data)
    assert (last["type"], last["code"]) == ("RUN_ERROR", ErrorCode.RUN_LOST)
    here.registry.by_key[RUN].cancel()
    await wait_until_stored(here)


@requirement("replica.read")
async def test_a_reader_elsewhere_who_has_the_end_of_a_deleted_run_gets_no_other() -> None:
    replicas = Replicas()
    here, there = await replicas.start(talker), await replicas.start(talker)
    whole = await envelopes(await here.admit(asking(), caller()))
    await wait_until_stored(here)
    all_of_it, rest = [aiter(await there.attach(caller(), "t1", "r1", after)) for after in (0, len(whole))]
    seen = (await anext(all_of_it)).envelopes()
    await replicas.store.threads.delete(RUN.thread)
    async with asyncio.timeout(WAIT):
        assert [batch for reader in (all_of_it, rest) async for batch in reader] == []
    assert seen == whole


@requirement("replica.read")
async def test_a_reader_that_leaves_a_replay_stops_its_reading_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = Replicas()
    here, there = await replicas.start(talker), await replicas.start(talker)
    await envelopes(await here.admit(asking(), caller()))
    await wait_until_stored(here)
    runs, pages = replicas.store.runs, []
    read = runs.envelopes

    async def one_by_one(key: RunKey, after: int) -> Sequence[Envelope]:
        pages.append(after)
        return (await read(key, after))[:1]

    monkeypatch.setattr(runs, "envelopes", one_by_one)
    reader = await there.attach(caller(), "t1", "r1", 0)
    await anext(aiter(reader))
    reader.close()
    assert await envelopes(reader) == []
    assert pages == [0]


@requirement("replica.watched")
async def test_a_reader_elsewhere_says_now_and_then_that_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_run, "SILENCE_SECONDS", 0.001)
    monkeypatch.setattr(remote_run, "LONGEST_SILENCE", 0.001)
    monkeypatch.setattr(remote_run, "WATCH_SECONDS", WAIT)
    replicas, here, there = await open_run()
    said, looked, get = list[bytes](), list[RunKey](), replicas.store.runs.get

    async def send(_: str, command: bytes) -> None:
        said.append(command)

    async def counted(key: RunKey) -> RunRecord | None:
        looked.append(key)
        return await get(key)

    reader = await there.attach(caller(), "t1", "r1", 3)
    monkeypatch.setattr(replicas.bus, "send", send)
    monkeypatch.setattr(replicas.store.runs, "get", counted)
    reading = asyncio.create_task(envelopes(reader))
    await eventually(lambda: len(looked) > 3)
    assert len(said) == 1
    here.registry.by_key[RUN].cancel()
    await reading
    await wait_until_stored(here)


async def no_bus(*_: object) -> AsyncIterator[Sequence[Envelope]]:
    """Raise the error of a bus that cannot be reached."""
    await asyncio.sleep(0)
    raise BusUnavailable("gone")
    yield []


@requirement("replica.bus")
async def test_a_subscription_to_a_silent_run_can_be_interrupted_without_a_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_run, "SILENCE_SECONDS", 0.001)
    replicas, here, there = await open_run()
    monkeypatch.setattr(replicas.bus, "follow", no_bus)
    reader = await there.attach(caller(), "t1", "r1", 3)
    reader.interrupt()
    async with asyncio.timeout(WAIT):
        assert (await anext(aiter(reader))).data == []
    await here.drain(0)
    await wait_until_stored(here)


@requirement("replica.retry")
async def test_a_reader_that_attaches_while_a_remote_retry_is_looked_up_reads_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replicas, here, there = await open_run()
    claim, may = replicas.store.runs.claim, asyncio.Event()

    async def later(asked: Claim) -> Claimed | AlreadyExists | ThreadBusy:
        await may.wait()
        return await claim(asked)

    monkeypatch.setattr(replicas.store.runs, "claim", later)
    async with asyncio.TaskGroup() as tasks:
        retry = tasks.create_task(there.admit(asking(), caller()))
        await eventually(lambda: there.registry.get(RUN))
        attached = tasks.create_task(there.attach(caller(), "t1", "r1", 2))
        may.set()
    here.registry.by_key[RUN].cancel()
    whole = await envelopes(retry.result())
    assert types(whole)[-1] == "RUN_FINISHED"
    assert await envelopes(attached.result()) == whole[2:]
    await wait_until_stored(here)


@requirement("replica.retry", "durable.gone")
@pytest.mark.parametrize("ran", [True, False])
async def test_readers_of_a_run_that_is_not_admitted_read_the_one_that_ran_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch, *, ran: bool
) -> None:
    replicas = Replicas()
    here, there = await replicas.start(talker), await replicas.start(talker)
    asked, may = asyncio.Event(), asyncio.Event()
    claim = replicas.store.runs.claim

    async def later(wanted: Claim) -> Claimed | AlreadyExists | ThreadBusy:
        asked.set()
        await may.wait()
        if not ran:
            raise StoreUnavailable("gone")
        return await claim(wanted)

    with monkeypatch.context() as patch:
        patch.setattr(replicas.store.runs, "claim", later)
        waiting = asyncio.create_task(there.admit(asking(), caller()))
        await wait_for_event(asked)
        reading = asyncio.create_task(there.attach(caller(), "t1", "r1", 0))
        await eventually(lambda: len(there.registry.by_key[RUN].admission.waiters) == 2)
    if ran:
        await envelopes(await here.admit(asking(), caller()))
        await wait_until_stored(here)
    may.set()
    await asyncio.wait([waiting, reading])
    if ran:
        assert types(await envelopes(reading.result()))[-1] == "RUN_FINISHED"
    else:
        with raises_code(ErrorCode.RUN_NOT_FOUND):
            reading.result()
        assert isinstance(waiting.exception(), AppError)
