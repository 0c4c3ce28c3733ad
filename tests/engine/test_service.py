"""The interface for transports: readers, the search for runs, and work that is deferred until it is needed."""

import asyncio

import pytest
from ag_ui.core import AgentCapabilities

from agui_container.agents.as_agent import as_agent
from agui_container.engine.engine import Engine, close_all
from agui_container.engine.limits import Policy
from agui_container.main import build_app
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.run.cluster import Cluster
from agui_container.run.policy import OnBusy, ThreadCondition
from agui_container.settings import Settings
from agui_container.stores.memory import MemoryStore
from tests.engine.doubles import (
    WAIT,
    FakeClock,
    agent_of,
    asking,
    caller,
    cancel_run,
    forever,
    make_service,
    status,
)
from tests.replicas.buses.memory_bus import MemoryBus


async def test_closing_a_reader_twice_counts_once() -> None:
    service = make_service(forever, Settings(on_disconnect="cancel"))
    first = await service.admit(asking(), caller())
    await service.attach(caller(), "t1", "r1", 0)
    first.close()
    first.close()
    assert (service.readers.open_count, status(first)) == (1, "running")
    await service.drain(0)


def test_building_the_server_makes_no_id_and_reads_no_clock() -> None:
    class NoClock(FakeClock):
        def time(self) -> float:
            raise NotImplementedError

    def no_id() -> str:
        raise NotImplementedError

    agent = as_agent(agent_of("hi"), "agent")
    cluster = Cluster(MemoryStore(), MemoryBus(), NoClock(), new_id=no_id)
    service = Engine(agent, Policy(), cluster, tools={}, capabilities=AgentCapabilities(), new_id=no_id)
    assert build_app(Settings(), service).state.service is service
    assert not service.health.ready


async def test_the_resources_of_the_agents_parts_are_released_when_the_service_closes() -> None:
    closed = []

    async def close() -> None:
        closed.append("a connection")

    cluster = Cluster(MemoryStore(), MemoryBus(), FakeClock(), new_id=lambda: "replica-1")
    service = Engine(
        as_agent(agent_of("hi"), "agent"),
        Policy(),
        cluster,
        tools={},
        capabilities=AgentCapabilities(),
        new_id=lambda: "id",
        closers=[close, close],
    )
    await service.open()
    await service.aclose()
    assert closed == ["a connection"] * 2


async def test_a_connection_that_fails_or_hangs_does_not_keep_the_others_open(
    caplog: pytest.LogCaptureFixture,
) -> None:
    closed = list[str]()

    async def close() -> None:
        closed.append("one")

    async def fail() -> None:
        raise OSError("reset by peer")

    async def hang() -> None:
        await asyncio.Event().wait()

    await close_all([fail, hang, close], 0.01)
    assert closed == ["one"]
    assert caplog.messages == ["closing failed"]


async def test_the_store_closes_to_its_end_although_the_bus_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agui_container.engine.engine.CLOSE_SECONDS", 0)
    closed, bus, store = list[str](), MemoryBus(), MemoryStore()

    async def hang() -> None:
        await asyncio.Event().wait()

    async def close_slowly() -> None:
        for _ in range(10):
            await asyncio.sleep(0)
        closed.append("the store")

    monkeypatch.setattr(bus, "aclose", hang)
    monkeypatch.setattr(store, "aclose", close_slowly)
    service = make_service(agent_of("hi"), cluster=Cluster(store, bus, FakeClock(), new_id=lambda: "replica-1"))
    await service.open()
    await service.aclose()
    assert closed == ["the store"]


async def test_a_request_that_overtakes_the_stop_before_it_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agui_container.engine.admission.CLOSING_READER_SECONDS", 2 * WAIT)
    service = make_service(forever)
    first = await service.admit(asking(), caller())
    asked = asyncio.create_task(service.admit(asking(run="r2"), caller()))
    await asyncio.sleep(0)
    first.close()
    second = await asyncio.wait_for(asked, WAIT)
    assert (status(first), second.run.key[2]) == ("cancelled", "r2")
    await service.drain(0)


@pytest.mark.parametrize("on_busy", OnBusy)
async def test_a_run_that_continues_another_is_refused_behind_a_newer_one_that_is_open_or_has_ended(
    on_busy: OnBusy,
) -> None:
    service = make_service(forever, Settings(on_busy=on_busy))
    cancel_run(service, await service.admit(asking(run="r1"), caller()))
    newer = await service.admit(asking(run="r2"), caller())
    newer.close()
    for was_open in (True, False):
        with pytest.raises(AppError) as refused:
            await service.admit(asking(run="late"), caller(), condition=ThreadCondition("r1"))
        assert newer.run.log.has_ended is not was_open
        assert refused.value.code is ErrorCode.THREAD_BUSY
        assert "late" not in service.registry.open_run_ids()
        cancel_run(service, newer)
    await service.admit(asking(run="r3"), caller(), condition=ThreadCondition("r2"))
    await service.drain(0)
