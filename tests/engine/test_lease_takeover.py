"""Runs and their readers when replicas lose the connection to the store, the bus or each other."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput, StateDeltaEvent, StateSnapshotEvent
from pydantic_core import from_json

from agui_container.ports import Item
from agui_container.ports.records import RunKey, RunRecord, ThreadKey
from agui_container.run.cluster import LEASE_SECONDS
from tests.engine.doubles import asking, caller, envelopes, eventually, wait_for_event
from tests.engine.replicas import Replicas, hello, hold_calls, leases_of
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


# --- known ids --------------------------------------------------------------------------------------------------------
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
