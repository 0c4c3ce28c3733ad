"""Leases under clocks that differ, what they say of a run, and the expiry of runs, notes and events."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput, TokenUsage

from agui_container.engine.engine import Engine
from agui_container.engine.views import View
from agui_container.ports import Item, RunContext
from agui_container.ports.records import (
    RunStatus,
    ThreadNote,
)
from agui_container.ports.store import READER_SECONDS
from agui_container.replicas import remote_run
from agui_container.replicas.leases import RENEW_SECONDS
from agui_container.run.cluster import LEASE_SECONDS
from tests.engine.doubles import START, WAIT, FakeClock, asking, caller, envelopes, eventually
from tests.engine.replicas import Replicas, hello, leases_of, renew_until
from tests.engine.test_recorder import RUN, beat, wait_until_stored
from tests.stores.doubles import claim_run


async def test_a_note_is_removed_when_it_has_expired() -> None:
    replicas = Replicas()
    store, leases = replicas.store, leases_of(await replicas.start(hello))
    await claim_run(store, RUN, "any")
    await store.put_notes(RUN.thread, [ThreadNote("call", name, b"", START + n) for n, name in enumerate("abc", 9)])
    replicas.clock.advance(10)
    await leases.purge()
    assert [note.id for note in await store.notes(RUN.thread, "call")] == ["c"]


@pytest.mark.parametrize("is_set_back", [False, True], ids=["steady clock", "clock that is set back"])
async def test_a_run_whose_replica_is_silent_is_ended_after_eight_seconds_and_not_before(*, is_set_back: bool) -> None:
    replicas = Replicas()
    there = leases_of(await replicas.start(hello))
    if is_set_back:
        for _ in range(9):
            await beat(there)
            replicas.clock.advance(RENEW_SECONDS)
        replicas.clock.advance(-3_600)
    await claim_run(replicas.store, RUN, "dead", lease=LEASE_SECONDS)
    standing: list[RunStatus] = []
    for _ in range(9):
        await beat(there)
        record = await replicas.store.run(RUN)
        assert record is not None
        standing.append(record.status)
        replicas.clock.advance(RENEW_SECONDS)
    assert standing == [*[RunStatus.RUNNING] * 8, RunStatus.ERROR]
    assert (LEASE_SECONDS, RENEW_SECONDS) == (8, 1)


async def test_replicas_whose_clocks_differ_by_a_minute_end_none_of_each_others_runs() -> None:
    replicas, late = Replicas(), FakeClock(START - 60)
    here, there = await replicas.start(hello), await replicas.start(hello, clock=late)
    readers = [await here.admit(asking(), caller()), await there.admit(asking("t2"), caller())]
    await eventually(lambda: all(len(reader.run.log) == 3 for reader in readers))
    for _ in range(8):
        for service in (here, there):
            await beat(leases_of(service))
        for clock in (replicas.clock, late):
            clock.advance(RENEW_SECONDS)
    assert not any(reader.run.log.has_ended for reader in readers)
    for service in (here, there):
        await service.drain(0)
        await wait_until_stored(service)


# --- standing of a run ------------------------------------------------------------------------------------------------


async def report_usage(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    ctx.usage.extend([TokenUsage(input_tokens=5, output_tokens=2), TokenUsage(input_tokens=1)])
    yield "hello"
    await asyncio.Event().wait()


async def listed_progress(service: Engine) -> View:
    """Return the tokens and readers of the only run, as this replica lists them."""
    [facts] = await service.runs.list(caller())
    return {name: facts.get(name) for name in ("status", "tokens", "readers")}


async def test_tokens_and_readers_of_a_run_are_seen_on_every_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_run, "REPORT_SECONDS", 0.0)
    monkeypatch.setattr(remote_run, "SILENCE_SECONDS", 0.001)
    replicas = Replicas()
    here, there = await replicas.start(report_usage), await replicas.start(hello)
    leases = leases_of(here)
    await here.admit(asking(), caller())
    run = here.registry.by_key[RUN]
    await eventually(lambda: run.log.watermark == 3)
    reading = [asyncio.create_task(envelopes(await there.attach(caller(), "t1", "r1", 0))) for _ in range(2)]
    await renew_until(leases, lambda: run.readers.count() == 2)
    await leases.renew()
    assert (
        await listed_progress(there) == await listed_progress(here) == {"status": "running", "tokens": 8, "readers": 2}
    )
    for task in reading:
        task.cancel()
    await asyncio.wait(reading)
    async with asyncio.timeout(WAIT):
        while run.readers.count() > 1:  # a report of a reader may have been under way
            replicas.clock.advance(READER_SECONDS)
            await leases.renew()
    await leases.renew()
    assert (
        await listed_progress(there) == await listed_progress(here) == {"status": "running", "tokens": 8, "readers": 1}
    )
    run.cancel()
    await wait_until_stored(here)
    assert await listed_progress(there) == {"status": "cancelled", "tokens": 8, "readers": None}
