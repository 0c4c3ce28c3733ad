"""Leases: under clocks that differ, when replicas lose the store or each other, and what they say of a run."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput, StateDeltaEvent, StateSnapshotEvent, TokenUsage
from pydantic_core import from_json

from agui_container.engine.engine import Engine
from agui_container.engine.views import View
from agui_container.ports import Item, RunContext
from agui_container.ports.records import (
    RunKey,
    RunRecord,
    RunStatus,
    ThreadKey,
    ThreadNote,
)
from agui_container.ports.store import READER_SECONDS
from agui_container.replicas import remote_run
from agui_container.replicas.leases import RENEW_SECONDS
from agui_container.run.cluster import LEASE_SECONDS
from tests.engine.doubles import START, WAIT, FakeClock, asking, caller, envelopes, eventually, wait_for_event
from tests.engine.replicas import Replicas, hello, hold_calls, leases_of, renew_until
from tests.run.test_recorder import RUN, beat, wait_until_stored
from tests.stores.doubles import claim_run, get_delta, get_run


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
        standing.append((await get_run(replicas.store, RUN)).status)
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


async def test_a_replica_that_was_disconnected_does_not_take_the_runs_of_others() -> None:
    replicas = Replicas()
    here, there = await replicas.start(hello), await replicas.start(hello)
    reader = await here.admit(asking(), caller())
    await eventually(lambda: here.registry.by_key[RUN].log.watermark == 3)
    theirs = leases_of(there)
    for _ in range(5):
        await beat(theirs)  # nobody has reached the store for a while, and they are the first
        replicas.clock.advance(LEASE_SECONDS + 1)
    assert not reader.run.log.has_ended
    record = await get_run(replicas.store, RUN)
    assert (record.replica, record.is_open) == ("replica-a", True)
    await here.drain(0)


async def test_the_end_of_a_lost_run_says_that_another_may_succeed() -> None:
    replicas = Replicas()
    there = leases_of(await replicas.start(hello))
    await claim_run(replicas.store, RUN, "dead", lease=LEASE_SECONDS)
    await there.renew()
    replicas.clock.advance(LEASE_SECONDS)
    await beat(there)
    last, record = (await replicas.store.envelopes(RUN, 0))[-1], await get_run(replicas.store, RUN)
    for end in (from_json(last.data), from_json(record.error or b"{}")):
        assert (end["code"], end["metadata"]) == ("RUN_LOST", {"retryable": True})


async def test_events_state_and_title_of_a_lost_run_are_kept() -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield StateSnapshotEvent(snapshot={"step": 1})
        yield StateDeltaEvent(delta=[{"op": "remove", "path": "/nothing"}])  # does not apply, which clients skip
        yield "half"
        await asyncio.Event().wait()

    replicas = Replicas()
    here = await replicas.start(agent)
    await here.admit(asking(), caller())
    await eventually(lambda: here.registry.by_key[RUN].log.watermark == 5)
    there = leases_of(await replicas.start(agent))
    await there.renew()
    replicas.clock.advance(LEASE_SECONDS)
    await beat(there)
    kept = await get_delta(replicas.store, ThreadKey("everybody", "t1"))
    assert (kept.state, kept.thread.title) == (b'{"step":1}', "hi")
    assert [from_json(message.data)["content"] for message in kept.messages] == ["hi", "half"]
    await here.drain(0)
    await wait_until_stored(here)


async def test_a_cancel_reaches_another_replica_when_that_renews_its_leases() -> None:
    replicas = Replicas()
    here, there = await replicas.start(hello), await replicas.start(hello)
    reader = await here.admit(asking(), caller())
    await eventually(lambda: here.registry.by_key[RUN].log.watermark == 3)
    assert (await there.runs.cancel(caller(), None, "r1"))["status"] == "running"
    await leases_of(here).renew()
    seen = await envelopes(reader)
    assert b'"cancelled"' in seen[-1].data
    assert (await there.runs.cancel(caller(), "t1", "r1"))["status"] == "cancelled"
    await wait_until_stored(here)


@pytest.mark.parametrize("is_unknown", [False, True], ids=["the store has the run", "a look-up has just missed it"])
async def test_a_cancel_in_the_moment_of_a_retry_reaches_the_run_elsewhere(
    monkeypatch: pytest.MonkeyPatch, *, is_unknown: bool
) -> None:
    replicas = Replicas()
    here, there = await replicas.start(hello), await replicas.start(hello)
    theirs = await there.admit(asking(), caller())
    await eventually(lambda: there.registry.by_key[RUN].log.watermark == 3)
    asked, may = hold_calls(monkeypatch, replicas.store, "begin")
    retry, get, looked = asyncio.create_task(here.admit(asking(), caller())), replicas.store.run, list[RunKey]()

    async def late(key: RunKey) -> RunRecord | None:
        looked.append(key)
        return None if is_unknown and len(looked) == 1 else await get(key)

    await wait_for_event(asked)
    monkeypatch.setattr(replicas.store, "run", late)
    cancelled = await here.runs.cancel(caller(), "t1", "r1")
    assert cancelled["status"] == ("cancelled" if is_unknown else "running")
    may.set()
    (await retry).close()
    await wait_until_stored(here)
    await leases_of(there).renew()
    assert b'"cancelled"' in (await envelopes(theirs))[-1].data
    assert here.registry.by_key.get(RUN) is None  # these ids mean the other run, also here
    await wait_until_stored(there)
