"""Engines that share a store and a bus, as replicas do."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from string import ascii_lowercase

import pytest
from ag_ui.core import RunAgentInput

from agui_container.engine.engine import Engine
from agui_container.engine.persistence.cluster import Cluster
from agui_container.engine.policy import CapacityLimits
from agui_container.ports import Item
from agui_container.ports.records import AlreadyExists, Claim, Claimed, ThreadBusy
from agui_container.protocol.wire.envelope import Envelope
from agui_container.settings import Settings
from agui_container.stores.memory import MemoryStore
from tests.buses.memory_bus import MemoryBus
from tests.engine.doubles import FakeClock, make_service


class Replicas:
    """Engines on one store and one bus, with one clock."""

    def __init__(self) -> None:
        self.store, self.bus, self.clock = MemoryStore(), MemoryBus(), FakeClock()
        self._names = iter(ascii_lowercase)

    async def start(
        self, agent: object, settings: Settings | None = None, limits: CapacityLimits | None = None
    ) -> Engine:
        cluster = Cluster(self.store, self.bus, self.clock, durable=True, new_id=lambda: f"replica-{next(self._names)}")
        service = make_service(agent, settings, clock=self.clock, cluster=cluster, limits=limits)
        await cluster.open()
        return service


def hold_claims(patch: pytest.MonkeyPatch, store: MemoryStore) -> tuple[asyncio.Event, asyncio.Event]:
    """Hold the claims of runs. The first event is set when a claim waits; set the second one to release the claims."""
    claim, asked, may = store.runs.claim, asyncio.Event(), asyncio.Event()

    async def held(wanted: Claim) -> Claimed | AlreadyExists | ThreadBusy:
        asked.set()
        await may.wait()
        return await claim(wanted)

    patch.setattr(store.runs, "claim", held)
    return asked, may


async def hello(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "hello"
    await asyncio.Event().wait()


def types(seen: Sequence[Envelope]) -> list[str]:
    return [envelope.type.value for envelope in seen]
