"""Runs and their readers when replicas lose the connection to the store, the bus or each other."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from ag_ui.core import CustomEvent, RunAgentInput, StateDeltaEvent, StateSnapshotEvent
from pydantic_core import from_json

from agui_container.engine.persistence import cluster as cluster_module
from agui_container.engine.persistence import recorder
from agui_container.engine.persistence.cluster import LEASE_SECONDS
from agui_container.engine.persistence.leases import run_periodically
from agui_container.engine.policy import CapacityLimits
from agui_container.ports import Item
from agui_container.ports.bus import BusUnavailable
from agui_container.ports.records import Claim, RunKey, RunStatus, ThreadKey
from agui_container.ports.store import StoreUnavailable
from agui_container.protocol.wire.envelope import Envelope
from agui_container.settings import Settings
from tests.engine.doubles import WAIT, asking, caller, envelopes, eventually, forever, wait_for_event
from tests.engine.replicas import Replicas, hello, hold_claims, types
from tests.engine.test_recorder import RUN, beat, wait_until_stored
from tests.requirements import requirement

# --- leases -----------------------------------------------------------------------------------------------------------


@requirement("replica.lost")
async def test_a_quiet_run_ends_where_it_is_no_longer_ours() -> None:
    replicas = Replicas()
    here, there = await replicas.start(hello), await replicas.start(hello)
    reader = await here.admit(asking(), caller())
    await eventually(lambda: here.registry.by_key[RUN].log.watermark == 3)
    ours, theirs = here.leases, there.leases
    await theirs.renew()
    replicas.clock.advance(LEASE_SECONDS + 1)
    await theirs.renew()
    replicas.clock.advance(LEASE_SECONDS)
    await beat(theirs)
    assert not reader.run.log.has_ended
    await ours.renew()
    assert reader.run.log.has_ended
    seen = await envelopes(reader)
    assert seen == list(await replicas.store.runs.envelopes(RUN, 0))
    assert b"RUN_LOST" in seen[-1].data
    await wait_until_stored(here)


@requirement("replica.lost")
async def test_a_replica_that_was_disconnected_does_not_take_the_runs_of_others() -> None:
    replicas = Replicas()
    here, there = await replicas.start(hello), await replicas.start(hello)
    reader = await here.admit(asking(), caller())
    await eventually(lambda: here.registry.by_key[RUN].log.watermark == 3)
    theirs = there.leases
    for _ in range(5):
        await beat(theirs)  # nobody has reached the store for a while, and they are the first
        replicas.clock.advance(LEASE_SECONDS + 1)
    assert not reader.run.log.has_ended
    record = await replicas.store.runs.get(RUN)
    assert record is not None
    assert (record.replica, record.is_active) == ("replica-a", True)
    await here.drain(0)


@requirement("replica.lost")
async def test_periodic_work_continues_after_an_error(caplog: pytest.LogCaptureFixture) -> None:
    troubles = [StoreUnavailable("gone"), BusUnavailable("gone"), ValueError("a mistake")]
    done = asyncio.Event()

    async def work() -> None:
        if troubles:
            raise troubles.pop()
        done.set()

    keeping = asyncio.create_task(run_periodically(work, 0))
    await wait_for_event(done)
    keeping.cancel()
    await asyncio.wait([keeping])
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING", "WARNING"]


@requirement("replica.lost")
async def test_a_run_that_cannot_be_ended_does_not_keep_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = Replicas()
    leases, other = (await replicas.start(hello)).leases, RunKey("everybody", "t2", "r2")
    for key in (RUN, other):
        await replicas.store.runs.claim(Claim(key, "dead", replicas.clock.time(), replicas.clock.time()))
    read = replicas.store.runs.envelopes

    async def broken(key: RunKey, after: int) -> Sequence[Envelope]:
        if key == RUN:
            raise KeyError("an event of another version")
        return await read(key, after)

    monkeypatch.setattr(replicas.store.runs, "envelopes", broken)
    await leases.renew()
    replicas.clock.advance(LEASE_SECONDS)
    await beat(leases)
    record = await replicas.store.runs.get(other)
    assert record is not None
    assert record.status is RunStatus.ERROR


@requirement("replica.lost")
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
    there = (await replicas.start(agent)).leases
    await there.renew()
    replicas.clock.advance(LEASE_SECONDS)
    await beat(there)
    kept = await replicas.store.threads.changes(ThreadKey("everybody", "t1"))
    assert kept is not None
    assert (kept.state, kept.thread.title) == (b'{"step":1}', "hi")
    assert [from_json(message.data)["content"] for message in kept.messages] == ["hi", "half"]
    await here.drain(0)
    await wait_until_stored(here)


@requirement("durable.cancel")
async def test_a_cancel_reaches_a_replica_without_a_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(*_: object) -> None:
        raise BusUnavailable("gone")

    replicas = Replicas()
    here, there = await replicas.start(hello), await replicas.start(hello)
    reader = await here.admit(asking(), caller())
    await eventually(lambda: here.registry.by_key[RUN].log.watermark == 3)
    monkeypatch.setattr(replicas.bus, "send", silent)
    assert (await there.runs.cancel(caller(), None, "r1"))["status"] == "running"
    await here.leases.renew()
    seen = await envelopes(reader)
    assert b'"cancelled"' in seen[-1].data
    assert (await there.runs.cancel(caller(), "t1", "r1"))["status"] == "cancelled"
    await wait_until_stored(here)


# --- writing ----------------------------------------------------------------------------------------------------------


@requirement("durable.first")
async def test_events_beyond_one_batch_do_not_wait_for_the_next_event() -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for text in "abc":  # a batch each
            yield StateSnapshotEvent(snapshot={"text": text * 300_000})
        yield "a question"
        yield CustomEvent(name="ask", value=1)
        await asyncio.Event().wait()

    service = await Replicas().start(agent)
    await service.admit(asking(), caller())
    log = service.registry.by_key[RUN].log
    await eventually(lambda: log.watermark == len(log) > 6)
    await service.drain(0)
    await wait_until_stored(service)


@requirement("durable.gone")
@pytest.mark.parametrize("retry_policy", [0.05, 60.0])
async def test_a_cancelled_end_is_shown_once_it_is_stored_and_never_without(
    monkeypatch: pytest.MonkeyPatch, retry_policy: float
) -> None:
    monkeypatch.setattr(recorder, "GIVE_UP_SECONDS", retry_policy)
    tried = asyncio.Event()

    async def gone(*_: object) -> None:
        tried.set()
        raise StoreUnavailable("gone")

    replicas = Replicas()
    service = await replicas.start(forever)
    reader = await service.admit(asking(), caller())
    log = service.registry.by_key[RUN].log
    await eventually(lambda: log.watermark == 1)
    with monkeypatch.context() as patched:
        patched.setattr(replicas.store.runs, "finish", gone)
        await service.runs.cancel(caller(), "t1", "r1")
        await wait_for_event(tried)
        assert log.has_ended
        if retry_policy < 1:
            await wait_until_stored(service)
        else:
            assert log.watermark == 1
    seen = await envelopes(reader)
    if retry_policy < 1:
        assert types(seen) == ["RUN_STARTED", "RUN_ERROR"]
        assert b"STORE_UNAVAILABLE" in seen[-1].data
    else:
        assert types(seen) == ["RUN_STARTED", "RUN_FINISHED"]
        assert b'"cancelled"' in seen[-1].data
    await wait_until_stored(service)


@requirement("durable.gone")
async def test_a_bus_that_hangs_holds_up_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def hang(*_: object) -> None:
        asked.append(1)
        await asyncio.Event().wait()

    async def brief(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "hello"

    monkeypatch.setattr(cluster_module, "SEND_SECONDS", 0.01)
    replicas = Replicas()
    service = await replicas.start(brief)
    monkeypatch.setattr(replicas.bus, "publish", hang)
    for number in range(3):
        seen = await envelopes(await service.admit(asking(run=f"r{number}"), caller()))
        assert types(seen)[-1] == "RUN_FINISHED"
        await wait_until_stored(service)
    assert len(asked) == 1  # and then it was left alone


@requirement("durable.gone")
async def test_an_error_that_nobody_expected_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async def odd(*_: object) -> None:
        raise ValueError("a gap")

    replicas = Replicas()
    service = await replicas.start(hello)
    monkeypatch.setattr(replicas.store.runs, "append", odd)
    seen = await envelopes(await service.admit(asking(), caller()))
    assert b"STORE_UNAVAILABLE" in seen[-1].data
    await wait_until_stored(service)


# --- known ids --------------------------------------------------------------------------------------------------------


@requirement("replica.retry")
async def test_a_run_that_is_being_written_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    started, may = [], asyncio.Event()

    async def agent(asked: RunAgentInput) -> AsyncIterator[Item]:
        started.append(asked.run_id)
        yield "hello"

    replicas = Replicas()
    service = await replicas.start(agent, limits=CapacityLimits(kept_runs=0))
    finish = replicas.store.runs.finish

    async def later(*given: object) -> None:
        await may.wait()
        await finish(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(replicas.store.runs, "finish", later)
    reader = await service.admit(asking(), caller())
    await eventually(lambda: reader.run.log.has_ended)
    reader.close()
    again = await service.admit(asking(), caller())
    may.set()
    assert types(await envelopes(again))[-1] == "RUN_FINISHED"
    assert started == ["r1"]
    await wait_until_stored(service)
    await envelopes(await service.admit(asking(), caller()))
    assert started == ["r1"]


@requirement("replica.retry")
async def test_a_run_that_waited_in_line_gives_way_to_the_one_that_ran_elsewhere_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def not_yet(_: RunKey) -> None:
        """Answer that no replica knows the run."""

    replicas = Replicas()
    settings = Settings(on_busy="enqueue")
    here, there = await replicas.start(forever, settings), await replicas.start(hello, settings)
    theirs = await there.admit(asking(), caller())
    theirs.run.cancel()
    await envelopes(theirs)
    await wait_until_stored(there)
    first = await here.admit(asking(run="r0"), caller())
    with monkeypatch.context() as patch:
        patch.setattr(replicas.store.runs, "get", not_yet)
        waiting = await here.admit(asking(), caller())
    first.run.cancel()
    await envelopes(first)
    assert b'"cancelled"' in (await envelopes(waiting))[-1].data  # the end of the other one
    await wait_until_stored(here)
    assert here.registry.get(RUN) is None
    assert (await here.runs.find(caller(), "t1", "r1"))["status"] == "cancelled"
    await wait_until_stored(here)


@requirement("replica.cancel", "replica.retry")
async def test_a_cancel_in_the_moment_of_a_retry_reaches_the_run_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = Replicas()
    here, there = await replicas.start(hello), await replicas.start(hello)
    theirs = await there.admit(asking(), caller())
    await eventually(lambda: there.registry.by_key[RUN].log.watermark == 3)
    asked, may = hold_claims(monkeypatch, replicas.store)
    retry = asyncio.create_task(here.admit(asking(), caller()))
    await asyncio.wait_for(asked.wait(), WAIT)
    assert (await here.runs.cancel(caller(), "t1", "r1"))["status"] == "running"
    may.set()
    await there.leases.renew()
    assert b'"cancelled"' in (await envelopes(theirs))[-1].data
    (await retry).close()
    await wait_until_stored(here)
    assert here.registry.get(RUN) is None  # these ids mean the other run, also here
    await wait_until_stored(there)
