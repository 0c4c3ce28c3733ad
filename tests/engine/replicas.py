"""Engines that share a store and a bus, as replicas do."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from string import ascii_lowercase

import pytest
from ag_ui.core import RunAgentInput
from sqlalchemy import make_url

from agui_container.engine.engine import Engine
from agui_container.engine.limits import CapacityLimits
from agui_container.ports import Clock, Item, Tool
from agui_container.ports.store import DurableStore, Store
from agui_container.protocol.envelope import Envelope
from agui_container.replicas.leases import Leases
from agui_container.run.cluster import Cluster
from agui_container.settings import Settings
from agui_container.stores.sql.store import SqlStore
from tests.engine.doubles import WAIT, FakeClock, make_service
from tests.replicas.buses.memory_bus import MemoryBus


def temporary_store(clock: Clock) -> SqlStore:
    """Return a store in a file that is deleted when the loop of the test ends."""
    folder = tempfile.TemporaryDirectory()
    store = SqlStore(make_url(f"sqlite:///{folder.name}/store.db"), now=clock.time)
    CLOSERS.append(asyncio.create_task(close_with_loop(store, folder)))
    return store


CLOSERS: list[asyncio.Task[None]] = []


async def close_with_loop(store: SqlStore, folder: tempfile.TemporaryDirectory[str]) -> None:
    try:
        await asyncio.Event().wait()  # the end of a loop cancels its tasks
    finally:
        await store.aclose()
        folder.cleanup()


class Replicas:
    """Engines on one store and one bus, with one clock unless another one is given."""

    def __init__(self) -> None:
        self.bus, self.clock = MemoryBus(), FakeClock()
        self.store = temporary_store(self.clock)
        self._names, self._ids = iter(ascii_lowercase), iter(ascii_lowercase)

    async def start(
        self,
        agent: object,
        settings: Settings | None = None,
        limits: CapacityLimits | None = None,
        clock: FakeClock | None = None,
        tools: Mapping[str, Tool] | None = None,
    ) -> Engine:
        clock = clock or self.clock
        cluster = Cluster(self.store, self.bus, clock, new_id=lambda: f"replica-{next(self._names)}")
        ids = f"id-{next(self._ids)}"
        service = make_service(agent, settings, clock=clock, cluster=cluster, limits=limits, tools=tools, ids=ids)
        await cluster.open()
        return service


def durable_store_of(service: Engine) -> DurableStore:
    assert service.cluster.durable is not None
    return service.cluster.durable


def leases_of(service: Engine) -> Leases:
    assert service.leases is not None
    return service.leases


async def renew_until(leases: Leases, condition: Callable[[], object]) -> None:
    """Renew the leases once, and then until the condition holds."""
    async with asyncio.timeout(WAIT):
        await leases.renew()
        while not condition():
            await leases.renew()


def hold_calls(patch: pytest.MonkeyPatch, store: Store, name: str) -> tuple[asyncio.Event, asyncio.Event]:
    """Hold the calls of a method. The first event is set when a call waits; set the second one to release the calls."""
    call, asked, may = getattr(store, name), asyncio.Event(), asyncio.Event()

    async def held(*args: object) -> object:
        asked.set()
        await may.wait()
        return await call(*args)

    patch.setattr(store, name, held)
    return asked, may


async def hello(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "hello"
    await asyncio.Event().wait()


def types(seen: Sequence[Envelope]) -> list[str]:
    return [envelope.type.value for envelope in seen]
