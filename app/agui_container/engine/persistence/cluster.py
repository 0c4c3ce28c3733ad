"""The store and the bus as this process uses them: who it is there, and for how long its word counts.

Rule: what the bus cannot bring fails nobody, because the store has it. The replica's name is made when the process
opens, because a restored snapshot must not share it.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from enum import StrEnum

from pydantic_core import to_json

from agui_container.ports import Clock
from agui_container.ports.bus import Bus, BusUnavailable
from agui_container.ports.records import RunKey, RunRecord
from agui_container.ports.store import Store
from agui_container.protocol.wire.envelope import Envelope

LEASE_SECONDS = 8.0
"""How long a run stays a replica's without a word from it."""

SEND_SECONDS = 0.5
"""How long a bus may take where somebody waits for it."""

QUIET_SECONDS = 5.0
"""For how long a bus is left alone that did not answer."""

GIVE_UP_SECONDS = 20.0
"""How long a store may not answer before its runs are ended, and their readers are let go."""

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
"""Seconds between two tries: for a thread that is busy, and of a store that does not answer."""

logger = logging.getLogger(__name__)


class ReplicaCommand(StrEnum):
    """What replicas tell each other about a run of the one that is told."""

    CANCEL = "cancel"
    READER_PRESENT = "watched"
    """And by which reader."""


class Cluster:
    """One process's door to what is kept.

    Args:
        store: keeps threads and runs.
        bus: tells other replicas.
        durable: whether the store outlives the process; then readers see only what is stored.
        new_id: makes the names of the replica and of its readers.
    """

    def __init__(self, store: Store, bus: Bus, clock: Clock, *, durable: bool, new_id: Callable[[], str]) -> None:
        self.store = store
        self.bus = bus
        self.clock = clock
        self.durable = durable
        self.replica = ""
        self.new_id = new_id
        self._quiet_until = -math.inf

    async def open(self) -> None:
        """Connect. Raises ``StoreUnavailable`` or ``BusUnavailable``: a start without them is none."""
        await self.store.open()
        try:
            await self.bus.open()
        except BaseException:
            await self.store.aclose()
            raise
        self.replica = self.new_id()

    async def aclose(self) -> None:
        """Let go of connections."""
        await self.bus.aclose()
        await self.store.aclose()

    async def cancel(self, run: RunRecord) -> None:
        """Have the replica that runs it end it: at once by the bus, or else when it renews its leases.

        Raises:
            StoreUnavailable: nobody has been told.
        """
        await self.store.runs.request_cancel(run.key)
        await self.send(run.replica, ReplicaCommand.CANCEL, run.key)

    async def send(self, replica: str, told: ReplicaCommand, run: RunKey, *more: str) -> None:
        """Tell a replica something about a run of its own. A bus that does not answer is not waited for."""
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await self.bus.send(replica, encode_command(told, run, *more))
        except (BusUnavailable, TimeoutError) as error:
            logger.warning("run=<%s> | the bus does not answer: %r", run.run_id, error)

    async def publish(self, run: RunKey, envelopes: Sequence[Envelope]) -> None:
        """Tell readers on other replicas of what is stored. Who misses it finds it in the store.

        A bus that does not answer is left alone for a while, so that it does not hold up runs.
        """
        now = asyncio.get_running_loop().time()
        if not envelopes or now < self._quiet_until:
            return
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await self.bus.publish(run, envelopes)
        except (BusUnavailable, TimeoutError) as error:
            self._quiet_until = now + QUIET_SECONDS
            logger.warning("run=<%s> | the bus does not answer: %r", run.run_id, error)

    def lease(self) -> float:
        """Until when a run that is claimed now is this replica's, in Unix seconds."""
        return self.clock.time() + LEASE_SECONDS


def encode_command(told: ReplicaCommand, run: RunKey, *more: str) -> bytes:
    """What one replica says to another."""
    return to_json((told, *run, *more))
