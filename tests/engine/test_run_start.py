"""Start of a stored run: the claim of its thread, and clients that leave, retry or cancel meanwhile."""

import asyncio

import pytest

from agui_container.engine.persistence.cluster import Cluster
from agui_container.ports.records import Change, Claim, Ending, RunKey, RunStatus, StoredMessage
from agui_container.ports.store import StoreUnavailable
from agui_container.settings import Settings
from agui_container.stores.memory import MemoryStore
from tests.buses.memory_bus import MemoryBus
from tests.engine.doubles import (
    START,
    FakeClock,
    asking,
    caller,
    envelopes,
    eventually,
    forever,
    make_service,
    wait_for_event,
)
from tests.engine.replicas import hold_claims
from tests.engine.test_recorder import RUN, THREAD, open_service, talker, wait_until_stored
from tests.requirements import requirement


@requirement("durable.gone")
async def test_a_run_in_line_whose_store_has_gone_away_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(*_: object) -> None:
        raise StoreUnavailable("gone")

    service = await open_service(forever, settings=Settings(on_busy="enqueue"))
    first = await service.admit(asking(), caller())
    waiting = await service.admit(asking(run="r2"), caller())
    with monkeypatch.context() as patched:
        patched.setattr(service.cluster.store.runs, "claim", gone)
        first.run.cancel()
        await eventually(lambda: waiting.run.log.has_ended)
    seen = await envelopes(waiting)
    assert [event.type.value for event in seen] == ["RUN_STARTED", "RUN_ERROR"]
    assert b"STORE_UNAVAILABLE" in seen[-1].data
    await wait_until_stored(service)


@requirement("durable.gone")
async def test_a_history_that_cannot_be_read_ends_the_run_and_frees_the_thread(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = await open_service(talker)
    store, key = service.cluster.store, RunKey("everybody", "t1", "r0")
    await store.runs.claim(Claim(key, "replica-1", START, START + 60))
    change = Change([StoredMessage("old", b"no message")])
    await store.runs.finish(key, "replica-1", [], Ending(RunStatus.FINISHED, START, change=change))
    seen = await envelopes(await service.admit(asking(), caller()))
    assert [event.type.value for event in seen] == ["RUN_STARTED", "RUN_ERROR"]
    assert b"INTERNAL_ERROR" in seen[-1].data  # no agent has run that could be blamed
    await wait_until_stored(service)
    assert [each.message for each in caplog.records if each.name == "agui_container.engine.run.run"] == [
        "run could not begin"
    ]
    thread = await store.threads.get(THREAD)
    assert thread is not None
    assert thread.active_run is None


@requirement("drop.continue")
async def test_a_caller_that_leaves_during_the_claim_of_its_run_does_it_no_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    begun, may = hold_claims(monkeypatch, store)
    service = await open_service(talker, store=store)
    admitting = asyncio.create_task(service.admit(asking(), caller()))
    await wait_for_event(begun)
    admitting.cancel()
    await asyncio.wait([admitting])
    may.set()
    assert (await envelopes(await service.attach(caller(), "t1", "r1", 0)))[-1].type == "RUN_FINISHED"
    await wait_until_stored(service)


@requirement("drop.grace")
async def test_a_caller_that_leaves_during_the_claim_of_its_run_has_left_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    begun, may = hold_claims(monkeypatch, store)
    service = await open_service(forever, store=store)
    admitting = asyncio.create_task(service.admit(asking(), caller()))
    await wait_for_event(begun)
    admitting.cancel()
    await asyncio.wait([admitting])
    assert service.registry.by_key[RUN].presence.is_abandoned(START)
    may.set()
    await service.drain(0)
    await wait_until_stored(service)


@requirement("retry.joins")
async def test_a_retry_of_a_run_that_goes_on_here_is_one_more_reader_of_it() -> None:
    service = await open_service(forever)
    first, again = [await service.admit(asking(), caller()) for _ in range(2)]
    assert again.run is first.run
    assert first.run.presence.local == 2
    await service.drain(0)
    await wait_until_stored(service)


@requirement("durable.first")
@pytest.mark.parametrize("durable", [True, False], ids=["durable", "as AgentCore Memory"])
async def test_a_run_that_is_cancelled_during_its_claim_keeps_what_was_said(
    monkeypatch: pytest.MonkeyPatch, *, durable: bool
) -> None:
    store = MemoryStore()
    begun, may = hold_claims(monkeypatch, store)
    clock = FakeClock()
    cluster = Cluster(store, MemoryBus(), clock, durable=durable, new_id=lambda: "replica-1")
    service = make_service(talker, clock=clock, cluster=cluster)
    await cluster.open()
    reader = service.start(asking(), caller())
    await wait_for_event(begun)
    reader.run.cancel()
    may.set()
    await wait_until_stored(service)
    kept = await store.threads.changes(THREAD)
    assert kept is not None
    assert [message.id for message in kept.messages] == ["u1"]
    record = await store.runs.get(RUN)
    assert record is not None
    assert record.status is RunStatus.CANCELLED
