"""Leases under clocks that differ, what they say of a run, and the expiry of runs, interrupts and events."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from ag_ui.core import RunAgentInput, TokenUsage

from agui_container.engine.engine import Engine
from agui_container.engine.log.subscription import REPORT_VALID_SECONDS
from agui_container.engine.persistence import remote_run
from agui_container.engine.persistence.cluster import LEASE_SECONDS
from agui_container.engine.persistence.leases import RENEW_SECONDS, RETENTION_SECONDS
from agui_container.engine.service import View
from agui_container.ports import Item, RunContext
from agui_container.ports.records import (
    AlreadyExists,
    Claim,
    Ending,
    InterruptScope,
    Lease,
    PendingInterrupt,
    RunKey,
    RunProgress,
    RunRecord,
    RunStatus,
    ThreadKey,
)
from tests.engine.doubles import START, FakeClock, asking, caller, envelopes, eventually
from tests.engine.replicas import Replicas, hello
from tests.engine.test_recorder import RUN, beat, wait_until_stored
from tests.requirements import requirement
from tests.stores.doubles import envelopes as stored_envelopes

A_DAY = 86_400.0


@requirement("durable.forgets")
async def test_the_events_of_a_run_are_kept_for_seven_days_after_its_end_and_its_thread_for_longer() -> None:
    replicas = Replicas()
    runs, clock = replicas.store.runs, replicas.clock
    leases = (await replicas.start(hello)).leases
    await runs.claim(Claim(RUN, "replica-a", START, START + LEASE_SECONDS))
    clock.advance(A_DAY)
    await leases.purge()
    await runs.finish(RUN, "replica-a", stored_envelopes(1, 3), Ending(RunStatus.FINISHED, clock.time()))
    clock.advance(7 * A_DAY)
    await leases.purge()
    assert len(await runs.envelopes(RUN, 0)) == 3
    clock.advance(1)
    await leases.purge()
    assert list(await runs.envelopes(RUN, 0)) == []
    known = await runs.claim(Claim(RUN, "replica-a", clock.time(), clock.time() + LEASE_SECONDS))
    assert isinstance(known, AlreadyExists)
    assert not known.run.has_events
    assert await replicas.store.threads.get(ThreadKey(RUN.owner, RUN.thread_id)) is not None
    assert RETENTION_SECONDS == 7 * A_DAY


@requirement("durable.forgets")
async def test_all_old_runs_are_forgotten_however_many_there_are() -> None:
    replicas = Replicas()
    runs = replicas.store.runs
    leases = (await replicas.start(hello)).leases
    keys = [RunKey("everybody", f"t{number}", "r1") for number in range(150)]
    for key in keys:
        await runs.claim(Claim(key, "replica-a", START, START + LEASE_SECONDS))
        await runs.finish(key, "replica-a", stored_envelopes(1, 1), Ending(RunStatus.FINISHED, START))
    replicas.clock.advance(RETENTION_SECONDS + 1)
    await leases.purge()
    assert [key for key in keys if await runs.envelopes(key, 0)] == []


@requirement("durable.forgets")
async def test_an_open_interrupt_is_removed_when_it_has_expired() -> None:
    replicas, place = Replicas(), InterruptScope(0, "everybody", "t1")
    leases, interrupts = (await replicas.start(hello)).leases, replicas.store.interrupts
    await interrupts.put(place, [PendingInterrupt("early", b"", START + 10), PendingInterrupt("late", b"", START + 20)])
    replicas.clock.advance(10)
    await leases.purge()
    assert [held.id for held in await interrupts.list_open(place, START)] == ["late"]


@requirement("replica.lost")
async def test_a_store_that_is_slow_to_hear_of_us_has_nobody_end_its_own_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = Replicas()
    here = await replicas.start(hello)
    await here.admit(asking(), caller())
    await eventually(lambda: here.registry.by_key[RUN].log.watermark == 3)
    leases = here.leases
    await leases.renew()
    held = await replicas.store.runs.renew(here.cluster.replica, here.cluster.lease())

    async def answer(*_: object) -> Sequence[Lease]:
        return held

    with monkeypatch.context() as patch:
        patch.setattr(replicas.store.runs, "renew", answer)  # and what it writes comes late
        for seconds in (LEASE_SECONDS - 2, 3):
            await leases.renew()
            replicas.clock.advance(seconds)
    await leases.reap()
    record = await replicas.store.runs.get(RUN)
    assert record is not None
    assert record.is_active


async def run_beside_clock_ahead(seconds: float) -> RunRecord | None:
    """Return the record of an active run beside a replica whose clock is ahead by these seconds."""
    replicas = Replicas()
    here = await replicas.start(hello)
    await here.admit(asking(), caller())
    await eventually(lambda: here.registry.by_key[RUN].log.watermark == 3)
    there = await replicas.start(hello)
    there.cluster.clock = theirs = FakeClock(START + seconds)
    ours, others = here.leases, there.leases
    for _ in range(10):
        await beat(others)  # at the worst moment: ours are about to speak
        await ours.renew()
        await beat(others)
        replicas.clock.advance(RENEW_SECONDS)
        theirs.advance(RENEW_SECONDS)
    record = await replicas.store.runs.get(RUN)
    await here.drain(0)
    await wait_until_stored(here)
    return record


@requirement("replica.lost")
async def test_a_replica_whose_clock_is_two_seconds_ahead_takes_nothing_from_one_that_lives() -> None:
    record = await run_beside_clock_ahead(2)
    assert record is not None
    assert (record.replica, record.is_active) == ("replica-a", True)


@requirement("replica.lost")
async def test_a_replica_whose_clock_is_far_ahead_ends_runs_of_one_that_lives() -> None:
    record = await run_beside_clock_ahead(LEASE_SECONDS - RENEW_SECONDS)
    assert record is not None
    assert (record.replica, record.status) == ("replica-b", RunStatus.ERROR)


@requirement("replica.lost")
async def test_a_run_whose_replica_is_silent_is_ended_after_eight_seconds_and_not_before() -> None:
    replicas = Replicas()
    there = (await replicas.start(hello)).leases
    await replicas.store.runs.claim(Claim(RUN, "dead", START, START + LEASE_SECONDS))
    standing: list[RunStatus] = []
    for _ in range(5):
        await beat(there)
        record = await replicas.store.runs.get(RUN)
        assert record is not None
        standing.append(record.status)
        replicas.clock.advance(RENEW_SECONDS)
    assert standing == [*[RunStatus.RUNNING] * 4, RunStatus.ERROR]
    assert (LEASE_SECONDS, RENEW_SECONDS) == (8, 2)


@requirement("replica.lost")
async def test_a_replica_whose_clock_is_set_back_ends_the_runs_of_the_dead_as_soon_as_before() -> None:
    replicas = Replicas()
    there = (await replicas.start(hello)).leases
    for _ in range(5):
        await beat(there)
        replicas.clock.advance(RENEW_SECONDS)
    replicas.clock.advance(-3_600)
    now = replicas.clock.time()
    await replicas.store.runs.claim(Claim(RUN, "dead", now, now + LEASE_SECONDS))
    for _ in range(5):
        await beat(there)
        replicas.clock.advance(RENEW_SECONDS)
    record = await replicas.store.runs.get(RUN)
    assert record is not None
    assert record.status is RunStatus.ERROR


# --- standing of a run ------------------------------------------------------------------------------------------------


async def report_usage(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    ctx.usage.extend([TokenUsage(input_tokens=5, output_tokens=2), TokenUsage(input_tokens=1)])
    yield "hello"
    await asyncio.Event().wait()


async def listed_progress(service: Engine) -> View:
    """Return the tokens and readers of the only run, as this replica lists them."""
    [facts] = await service.runs.list(caller())
    return {name: facts.get(name) for name in ("status", "tokens", "readers")}


@requirement("replica.standing", "replica.watched")
async def test_tokens_and_readers_of_a_run_are_seen_on_every_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_run, "WATCH_SECONDS", 0.0)
    monkeypatch.setattr(remote_run, "SILENCE_SECONDS", 0.001)
    replicas = Replicas()
    here, there = await replicas.start(report_usage), await replicas.start(hello)
    leases = here.leases
    lease_task = asyncio.create_task(leases.run())
    await here.admit(asking(), caller())
    run = here.registry.by_key[RUN]
    await eventually(lambda: run.log.watermark == 3)
    reading = [asyncio.create_task(envelopes(await there.attach(caller(), "t1", "r1", 0))) for _ in range(2)]
    await eventually(lambda: run.presence.count(replicas.clock.time()) == 3)
    await leases.report()
    assert (
        await listed_progress(there) == await listed_progress(here) == {"status": "running", "tokens": 8, "readers": 3}
    )
    for task in reading:
        task.cancel()
    await asyncio.wait(reading)
    replicas.clock.advance(REPORT_VALID_SECONDS)
    await leases.report()
    assert (
        await listed_progress(there) == await listed_progress(here) == {"status": "running", "tokens": 8, "readers": 1}
    )
    run.cancel()
    await wait_until_stored(here)
    assert await listed_progress(there) == {"status": "cancelled", "tokens": 8, "readers": None}
    lease_task.cancel()
    await asyncio.wait([lease_task])


@requirement("replica.standing")
async def test_a_run_that_stands_as_it_did_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = Replicas()
    here = await replicas.start(hello)
    runs, written = replicas.store.runs, list[list[RunProgress]]()
    note = runs.report_progress

    async def report_and_record(replica: str, reports: Sequence[RunProgress]) -> None:
        written.append(list(reports))
        await note(replica, reports)

    monkeypatch.setattr(runs, "report_progress", report_and_record)
    leases = here.leases
    first = await here.admit(asking(), caller())
    await leases.report()
    await leases.report()
    first.close()
    await leases.report()
    assert written == [[RunProgress(RUN, 1)], [RunProgress(RUN, 0)]]
    await here.drain(0)
    await wait_until_stored(here)


@requirement("replica.standing", "replica.lost")
async def test_the_usage_of_a_lost_run_stays_known() -> None:
    replicas = Replicas()
    here, there = await replicas.start(report_usage), await replicas.start(hello)
    await here.admit(asking(), caller())
    await eventually(lambda: here.registry.by_key[RUN].log.watermark == 3)
    await here.leases.report()
    others = there.leases
    await others.renew()
    replicas.clock.advance(LEASE_SECONDS)
    await others.renew()
    await others.reap()
    assert await listed_progress(there) == {"status": "error", "tokens": 8, "readers": None}
    await here.drain(0)
    await wait_until_stored(here)
