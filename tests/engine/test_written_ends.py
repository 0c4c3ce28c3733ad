"""The end of a run and its write: the process is busy until it is written, and readers always get an end."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from ag_ui.core import RunAgentInput

from agui_container.engine.engine import Engine
from agui_container.ports import Item
from agui_container.ports import store as store_port
from agui_container.ports.records import Ending, RunKey
from agui_container.ports.store import Store
from agui_container.protocol.envelope import Envelope
from agui_container.run import recorder
from agui_container.stores.memory import MemoryStore
from tests.engine.doubles import FakeClock, asking, caller, envelopes, eventually, wait_for_event
from tests.engine.replicas import temporary_store
from tests.engine.test_recorder import open_service

END_TYPES = ["TEXT_MESSAGE_END", "RUN_FINISHED"]


class Gate:
    """The ends of runs, which a store writes once ``may_finish`` is set."""

    def __init__(self, store: Store) -> None:
        self.is_finishing, self.may_finish = asyncio.Event(), asyncio.Event()
        self.error: Exception | None = None
        self._finish = store.finish

    async def finish(self, run: RunKey, replica: str, envelopes: Sequence[Envelope], ending: Ending) -> None:
        self.is_finishing.set()
        await self.may_finish.wait()
        if self.error is not None:
            raise self.error
        await self._finish(run, replica, envelopes, ending)


async def open_gated(kind: str) -> tuple[Engine, Gate]:
    """Return an engine on a store of a kind. One in memory stands for that which writes turns to a service."""
    store = temporary_store(FakeClock()) if kind == "durable" else MemoryStore()
    gate = Gate(store)
    vars(store).update(finish=gate.finish, writes_turns=kind == "turns")
    return await open_service(talker, store=store), gate


async def talker(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "hello"
    await asyncio.sleep(0)


def status_of(service: Engine) -> object:
    return service.health.report()["status"]


@pytest.mark.parametrize("kind", ["memory", "turns", "durable"])
async def test_the_process_is_busy_until_the_end_is_written(kind: str) -> None:
    service, store = await open_gated(kind)
    reader = await service.admit(asking(), caller())
    await wait_for_event(store.is_finishing)
    assert reader.run.log.has_ended
    assert status_of(service) == "HealthyBusy"
    store.may_finish.set()
    assert [it.type for it in await envelopes(reader)][-2:] == END_TYPES
    await eventually(lambda: status_of(service) == "Healthy")


async def test_readers_get_the_end_of_a_turn_after_it_is_written() -> None:
    service, store = await open_gated("turns")
    first = await service.admit(asking(), caller())
    await wait_for_event(store.is_finishing)
    second = await service.attach(caller(), "t1", "r1", 0)
    for reader in (first, second):
        seen = [it.type for it in (await anext(reader)).envelopes()]
        assert seen == ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    rest = [asyncio.create_task(envelopes(reader)) for reader in (first, second)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert not any(reading.done() for reading in rest)
    store.may_finish.set()
    assert [[it.type for it in await reading] for reading in rest] == [["RUN_FINISHED"], ["RUN_FINISHED"]]


async def test_readers_get_the_end_of_a_turn_that_cannot_be_written() -> None:
    service, store = await open_gated("turns")
    store.error = RuntimeError("a service that fails")
    store.may_finish.set()
    reader = await service.admit(asking(), caller())
    assert [it.type for it in await envelopes(reader)][-2:] == END_TYPES


async def test_readers_get_the_end_of_a_turn_while_its_write_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_port, "GIVE_UP_SECONDS", 0.0)
    service, store = await open_gated("turns")
    reader = await service.admit(asking(), caller())
    assert [it.type for it in await envelopes(reader)][-2:] == END_TYPES
    assert status_of(service) == "HealthyBusy"
    store.may_finish.set()
    await eventually(lambda: status_of(service) == "Healthy")


@pytest.mark.parametrize("closing_fails", [False, True])
async def test_readers_get_an_end_where_the_recording_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, closing_fails: bool
) -> None:
    service, _ = await open_gated("durable")
    monkeypatch.setattr(recorder, "WINDOW_SECONDS", "a fault in the program")
    if closing_fails:
        monkeypatch.setattr(recorder, "RunSequence", None)
    reader = await service.admit(asking(), caller())
    seen = await envelopes(reader)
    assert (seen[0].type, seen[-1].type) == ("RUN_STARTED", "RUN_ERROR")
    assert [it.seq for it in seen] == list(range(1, len(seen) + 1))
    assert b"STORE_UNAVAILABLE" in seen[-1].data
    assert "run recording failed run=r1" in caplog.text
    await eventually(lambda: status_of(service) == "Healthy")
