"""Runs and their readers when replicas lose the connection to the store, the bus or each other."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput, StateDeltaEvent, StateSnapshotEvent
from pydantic_core import from_json

from agui_container.ports import Item
from agui_container.ports import store as store_port
from agui_container.ports.records import ThreadKey
from agui_container.ports.store import StoreUnavailable
from agui_container.run.cluster import LEASE_SECONDS
from tests.engine.doubles import WAIT, asking, caller, envelopes, eventually, forever, wait_for_event
from tests.engine.replicas import Replicas, hello, hold_claims, leases_of, types
from tests.engine.test_recorder import RUN, beat, wait_until_stored


# --- leases -----------------------------------------------------------------------------------------------------------
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
    record = await replicas.store.run(RUN)
    assert record is not None
    assert (record.replica, record.is_open) == ("replica-a", True)
    await here.drain(0)


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
    kept = await replicas.store.thread(ThreadKey("everybody", "t1"))
    assert kept is not None
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


# --- writing ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("retry_policy", [0.05, 60.0])
async def test_a_cancelled_end_is_shown_once_it_is_stored_and_never_without(
    monkeypatch: pytest.MonkeyPatch, retry_policy: float
) -> None:
    monkeypatch.setattr(store_port, "GIVE_UP_SECONDS", retry_policy)
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
        patched.setattr(replicas.store, "finish", gone)
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


# --- known ids --------------------------------------------------------------------------------------------------------
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
    await leases_of(there).renew()
    assert b'"cancelled"' in (await envelopes(theirs))[-1].data
    (await retry).close()
    await wait_until_stored(here)
    assert here.registry.by_key.get(RUN) is None  # these ids mean the other run, also here
    await wait_until_stored(there)
