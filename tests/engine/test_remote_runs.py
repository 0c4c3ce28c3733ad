"""Runs of other replicas: the cost of a reader, and errors when the store or the bus fails."""

import asyncio
from collections.abc import Sequence

import pytest

from agui_container.engine.engine import Engine
from agui_container.ports.records import RunKey
from agui_container.ports.store import StoreUnavailable
from agui_container.protocol.envelope import Envelope
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.replicas import remote_run
from tests.engine.doubles import asking, caller, envelopes, eventually, raises_code, wait_for_event
from tests.engine.replicas import Replicas, hello, hold_calls, leases_of, renew_until, types
from tests.engine.test_recorder import RUN, talker, wait_until_stored


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
