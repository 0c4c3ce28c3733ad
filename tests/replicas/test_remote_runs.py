"""Runs of other replicas: their readers, errors of the store, and runs that are only stored."""

import asyncio
from collections.abc import Sequence

import pytest

from agui_container.engine.engine import Engine
from agui_container.ports.records import RunKey
from agui_container.ports.store import Delete, StoreUnavailable
from agui_container.protocol.envelope import Envelope
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.replicas import remote_run
from agui_container.replicas.leases import RETENTION_SECONDS
from tests.engine.doubles import asking, caller, envelopes, eventually, raises_code, wait_for_event
from tests.engine.replicas import Replicas, hello, hold_calls, leases_of, renew_until, types
from tests.run.test_recorder import RUN, open_service, talker, wait_until_stored


async def open_run() -> tuple[Replicas, Engine, Engine]:
    """Return two replicas, and a run that is active on the first."""
    replicas = Replicas()
    here, there = await replicas.start(hello), await replicas.start(hello)
    await here.admit(asking(), caller())
    await eventually(lambda: here.registry.by_key[RUN].log.watermark == 3)
    return replicas, here, there


async def test_a_reader_elsewhere_holds_up_the_grace_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_run, "REPORT_SECONDS", 0.0)
    monkeypatch.setattr(remote_run, "SILENCE_SECONDS", 0.001)
    replicas = Replicas()
    here, there = await replicas.start(hello), await replicas.start(hello)
    (await here.admit(asking(), caller())).close()
    run = here.registry.by_key[RUN]
    await eventually(lambda: run.log.watermark == 3)
    reading = asyncio.create_task(envelopes(await there.attach(caller(), "t1", "r1", 0)))
    for _ in range(3):
        replicas.clock.advance(29)
        await renew_until(leases_of(here), run.readers.count)
    assert not run.log.has_ended
    run.cancel()
    assert types(await reading)[-1] == "RUN_FINISHED"
    await wait_until_stored(here)


async def test_a_reader_elsewhere_reads_on_when_the_store_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas, here, there = await open_run()
    reader = await there.attach(caller(), "t1", "r1", 0)
    failures, read = iter(range(3)), replicas.store.envelopes

    async def flaky(key: RunKey, after: int) -> Sequence[Envelope]:
        if next(failures, None) is not None:
            raise StoreUnavailable("a moment")
        return await read(key, after)

    monkeypatch.setattr(replicas.store, "envelopes", flaky)
    here.registry.by_key[RUN].cancel()
    assert types(await envelopes(reader)) == types(await read(RUN, 0))
    assert next(failures, None) is None
    await wait_until_stored(here)


@pytest.mark.parametrize("ran", [True, False])
async def test_readers_of_a_run_that_is_not_admitted_read_the_one_that_ran_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch, *, ran: bool
) -> None:
    replicas = Replicas()
    here, there = await replicas.start(talker), await replicas.start(talker)

    async def gone(*_: object) -> None:
        raise StoreUnavailable("gone")

    with monkeypatch.context() as patch:
        if not ran:
            patch.setattr(replicas.store, "begin", gone)
        asked, may = hold_calls(patch, replicas.store, "begin")
        waiting = asyncio.create_task(there.admit(asking(), caller()))
        await wait_for_event(asked)
        reading = asyncio.create_task(there.attach(caller(), "t1", "r1", 0))
        await asyncio.sleep(0)
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


async def replicas_after_a_run() -> tuple[Replicas, Engine, Engine, list[Envelope]]:
    """Return two replicas, and a run that has ended on the first and has no reader."""
    replicas = Replicas()
    here, there = await replicas.start(talker), await replicas.start(talker)
    reader = await here.admit(asking(), caller())
    whole = await envelopes(reader)
    await wait_until_stored(here)
    reader.close()
    return replicas, here, there, whole


@pytest.mark.parametrize("asked", [("t1", "r1"), (None, "r1"), ("t1", None)])
async def test_a_run_whose_events_are_forgotten_is_found_and_only_cannot_be_read(
    asked: tuple[str | None, str | None],
) -> None:
    replicas, here, there, _ = await replicas_after_a_run()
    replicas.clock.advance(RETENTION_SECONDS + 1)
    await leases_of(here).purge()
    for service in (here, there):
        [known] = await service.runs.list(caller())
        assert known["status"] == "finished"
        assert await service.runs.find(caller(), *asked) == await service.runs.cancel(caller(), *asked) == known
        with raises_code(ErrorCode.RUN_NOT_FOUND):
            await service.attach(caller(), *asked, 0)


async def test_a_stored_run_without_readers_takes_no_memory() -> None:
    service = await open_service(talker)
    reader = await service.admit(asking(), caller())
    await envelopes(reader)
    await wait_until_stored(service)
    assert service.registry.by_key.get(RUN) is not None
    assert service.readings()["agui.limit.used"]["logBytes"] > 0
    reader.close()
    assert service.registry.by_key.get(RUN) is None
    assert service.readings()["agui.limit.used"]["logBytes"] == 0


@pytest.mark.parametrize("again", [False, True])
async def test_a_replay_whose_run_is_deleted_ends_with_an_error_and_never_with_another_run(
    monkeypatch: pytest.MonkeyPatch, *, again: bool
) -> None:
    replicas, here, there, whole = await replicas_after_a_run()
    page = replicas.store.envelopes

    async def short(run: RunKey, after: int) -> Sequence[Envelope]:
        return (await page(run, after))[:2]

    monkeypatch.setattr(replicas.store, "envelopes", short)
    replay = aiter(await there.attach(caller(), "t1", "r1", 0))
    seen = (await anext(replay)).envelopes()
    assert await replicas.store.edit(RUN.thread, Delete())
    if again:
        replicas.clock.advance(1)
        await envelopes(await here.admit(asking(), caller()))
        await wait_until_stored(here)
    seen += [envelope async for batch in replay for envelope in batch.envelopes()]
    assert seen[:2] == whole[:2]
    assert [envelope.type for envelope in seen[2:]] == ["RUN_ERROR"]
    assert b"RUN_LOST" in seen[-1].data
