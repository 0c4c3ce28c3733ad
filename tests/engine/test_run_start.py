"""Start of a run: admission, the claim of its thread, and clients that leave, retry or cancel meanwhile."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from ag_ui.core import RunAgentInput

from agui_container.engine import admission as admission_module
from agui_container.engine.inputs import fingerprint_of
from agui_container.main import create_app
from agui_container.ports import Item
from agui_container.ports.records import Change, Ending, RunKey, RunStatus, StoredMessage
from agui_container.ports.store import StoreUnavailable
from agui_container.protocol.errors import ErrorCode
from agui_container.settings import Settings
from agui_container.stores.memory import MemoryStore
from agui_container.threads import LARGE_BYTES
from tests.behaviour.server import serving
from tests.engine.doubles import (
    START,
    FakeClock,
    ask,
    asking,
    caller,
    cancel_run,
    envelopes,
    eventually,
    forever,
    make_service,
    raises_code,
    wait_for_event,
)
from tests.engine.replicas import hold_calls, temporary_store
from tests.run.test_recorder import RUN, THREAD, open_service, talker, wait_until_stored
from tests.stores.doubles import claim_run, get_delta, get_run, get_thread
from tests.websocket import receive_until, socket_to


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
    assert (await get_thread(store, THREAD)).active_run is None
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
    assert [message.id for message in (await get_delta(store, THREAD)).messages] == ["u1"]
    assert (await get_run(store, RUN)).status is (RunStatus.ERROR if stops else RunStatus.CANCELLED)


LARGE = "x" * (LARGE_BYTES + 1)


class CountingAgent:
    def __init__(self) -> None:
        self.runs = 0

    async def __call__(self, _: RunAgentInput) -> AsyncIterator[Item]:
        self.runs += 1
        yield "hello"


class Gate:
    """Holds admissions of large inputs, which compute a fingerprint in a thread, until ``open``."""

    def __init__(self, compute: Callable[[RunAgentInput], bytes]) -> None:
        self._compute = compute
        self._is_open = threading.Event()
        self.open = self._is_open.set
        self.waiting = 0

    def fingerprint_of(self, run_input: RunAgentInput) -> bytes:
        self.waiting += 1
        self._is_open.wait()
        return self._compute(run_input)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(fingerprint_of)
    monkeypatch.setattr(admission_module, "fingerprint_of", gate.fingerprint_of)
    yield gate
    gate.open()


@pytest.mark.parametrize("ids", [("t1", "r1"), (None, "r1"), ("t1", None)])
async def test_a_cancel_during_the_admission_of_a_large_input_cancels_its_run(
    gate: Gate, ids: tuple[str | None, str | None]
) -> None:
    agent = CountingAgent()
    service = make_service(agent)
    admission = asyncio.create_task(service.admit(asking(), caller(), len(LARGE)))
    await eventually(lambda: gate.waiting)
    cancelling = asyncio.create_task(service.runs.cancel(caller(), *ids))
    await asyncio.sleep(0)
    gate.open()
    assert (await cancelling)["status"] == "cancelled"
    assert [it.type for it in await envelopes(await admission)] == ["RUN_STARTED", "RUN_FINISHED"]
    await service.drain(0)
    assert agent.runs == 0


async def test_a_cancel_of_an_input_that_is_refused_finds_no_run(gate: Gate) -> None:
    service = make_service(CountingAgent())
    admission = asyncio.create_task(service.admit(asking(), caller(), len(LARGE)))
    await eventually(lambda: gate.waiting)
    cancelling = asyncio.create_task(service.runs.cancel(caller(), "t1", "r1"))
    await service.drain(0)
    gate.open()
    with raises_code(ErrorCode.SHUTTING_DOWN):
        await admission
    with raises_code(ErrorCode.RUN_NOT_FOUND):
        await cancelling


async def test_somebody_else_cannot_cancel_a_run_during_its_admission(gate: Gate) -> None:
    service = make_service(CountingAgent())
    admission = asyncio.create_task(service.admit(asking(), caller(), len(LARGE)))
    await eventually(lambda: gate.waiting)
    with raises_code(ErrorCode.RUN_NOT_FOUND):
        await service.runs.cancel(caller("mallory"), None, "r1")
    gate.open()
    assert (await envelopes(await admission))[-1].type == "RUN_FINISHED"


@pytest.mark.wire
async def test_a_cancel_over_a_socket_during_the_admission_cancels_its_run(gate: Gate) -> None:
    agent = CountingAgent()
    async with serving(create_app(agent, Settings())) as url, socket_to(url) as socket:
        await socket.send(json.dumps(ask(text=LARGE)))
        await eventually(lambda: gate.waiting)
        await socket.send(json.dumps({"command": {"type": "cancel", "runId": "r1"}, "id": "c"}))
        await socket.send(json.dumps({"command": {"type": "ping"}}))
        frames = await receive_until(socket, lambda frame: frame.get("control") == "pong")
        gate.open()
        frames += await receive_until(socket, lambda frame: frame.get("type") == "RUN_FINISHED")
        if not any(frame.get("control") == "result" for frame in frames):
            frames += await receive_until(socket, lambda frame: frame.get("control") == "result")
    assert [frame["type"] for frame in frames if "type" in frame] == ["RUN_STARTED", "RUN_FINISHED"]
    assert [frame["id"] for frame in frames if frame.get("control") == "result"] == ["c"]
    assert agent.runs == 0
