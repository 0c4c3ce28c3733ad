"""Start of a stored run: the claim of its thread, and clients that leave, retry or cancel meanwhile."""

import asyncio

import pytest

from agui_container.ports.records import Change, Ending, RunKey, RunStatus, StoredMessage
from agui_container.ports.store import StoreUnavailable
from agui_container.protocol.errors import ErrorCode
from agui_container.settings import Settings
from agui_container.stores.memory import MemoryStore
from tests.engine.doubles import (
    START,
    FakeClock,
    asking,
    caller,
    cancel_run,
    envelopes,
    eventually,
    forever,
    raises_code,
    wait_for_event,
)
from tests.engine.replicas import hold_calls, temporary_store
from tests.engine.test_recorder import RUN, THREAD, open_service, talker, wait_until_stored
from tests.stores.doubles import claim_run, thread_of


@pytest.mark.parametrize(
    ("failure", "code"),
    [(StoreUnavailable("gone"), b"STORE_UNAVAILABLE"), (RuntimeError("unreadable"), b"INTERNAL_ERROR")],
)
async def test_a_run_in_line_whose_store_fails_says_so(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, code: bytes
) -> None:
    async def fail(*_: object) -> None:
        raise failure

    service = await open_service(forever, settings=Settings(on_busy="enqueue"))
    first = await service.admit(asking(), caller())
    waiting = await service.admit(asking(run="r2"), caller())
    with monkeypatch.context() as patched:
        for name in ("begin", "run"):
            patched.setattr(service.cluster.store, name, fail)
        cancel_run(service, first)
        await eventually(lambda: waiting.run.log.has_ended)
    assert (await envelopes(first))[-1].type == "RUN_FINISHED"
    seen = await envelopes(waiting)
    assert [event.type.value for event in seen] == ["RUN_STARTED", "RUN_ERROR"]
    assert code in seen[-1].data
    await wait_until_stored(service)


async def test_a_history_that_cannot_be_read_refuses_the_run_and_leaves_the_thread_free(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = await open_service(talker)
    store, key = service.cluster.store, RunKey("everybody", "t1", "r0")
    await claim_run(store, key, "replica-1")
    change = Change([StoredMessage("old", b"no message")])
    await store.finish(key, "replica-1", [], Ending(RunStatus.FINISHED, START, change=change))
    with raises_code(ErrorCode.INTERNAL_ERROR):  # no agent has run that could be blamed
        await service.admit(asking(), caller())
    await wait_until_stored(service)
    assert [each.message for each in caplog.records if each.name == "agui_container.engine.admission"] == [
        "run could not begin run=r1"
    ]
    thread = await thread_of(store, THREAD)
    assert thread is not None
    assert thread.active_run is None
    assert await store.run(RUN) is None


async def test_a_caller_that_leaves_during_the_claim_of_its_run_has_left_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    begun, may = hold_calls(monkeypatch, store, "begin")
    service = await open_service(forever, store=store)
    admitting = asyncio.create_task(service.admit(asking(), caller()))
    await wait_for_event(begun)
    admitting.cancel()
    await asyncio.wait([admitting])
    assert service.registry.by_key[RUN].readers.is_abandoned()
    may.set()
    await service.drain(0)
    await wait_until_stored(service)


@pytest.mark.parametrize("stops", [True, False], ids=["by a shutdown", "by a cancel"])
@pytest.mark.parametrize("durable", [True, False], ids=["durable", "as AgentCore Memory"])
async def test_a_run_that_ends_during_its_claim_keeps_what_was_said(
    monkeypatch: pytest.MonkeyPatch, *, durable: bool, stops: bool
) -> None:
    store = temporary_store(FakeClock()) if durable else MemoryStore()
    begun, may = hold_calls(monkeypatch, store, "begin")
    service = await open_service(talker, store=store)
    admitting = asyncio.create_task(service.admit(asking(), caller()))
    await wait_for_event(begun)
    drain = asyncio.create_task(service.drain(0)) if stops else None
    await asyncio.sleep(0)
    service.registry.by_key[RUN].cancel()
    may.set()
    await admitting
    if drain is not None:
        await drain
    await wait_until_stored(service)
    kept = await store.thread(THREAD)
    assert kept is not None
    assert [message.id for message in kept.messages] == ["u1"]
    record = await store.run(RUN)
    assert record is not None
    assert record.status is (RunStatus.ERROR if stops else RunStatus.CANCELLED)
