"""The cluster of replicas on one store and bus, as one of them uses it: its name, its leases, its messages to others.

Rule: a failure of the bus fails no run, because the store has everything that the bus carries. The replica name is made
when the process opens, because a restored snapshot of the process must not share it.
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
from agui_container.runtime.log_values import format_fields

LEASE_SECONDS = 8.0
"""Duration of a lease. A run whose lease is not renewed may be taken over by another replica."""

SEND_SECONDS = 0.5
"""Timeout of a bus call that a run or a caller waits for."""

QUIET_SECONDS = 5.0
"""Pause of publishing after a bus call has failed."""

logger = logging.getLogger(__name__)


class ReplicaCommand(StrEnum):
    """A message from one replica to another, about a run of the receiver."""

    CANCEL = "cancel"
    READER_PRESENT = "watched"
    """Followed by the name of the reader."""


class Cluster:
    """All replicas on one store and one bus, as this process sees them. A process on its own is a cluster of one.

    The class connects to both, names this replica, and sends its commands and events to the others.

    Args:
        store: stores threads and runs.
        bus: sends commands and events to other replicas.
        clock: the time of leases.
        durable: True if the store outlives the process. Readers then see only events that are stored.
        new_id: makes the names of the replica and of its readers.

    Attributes:
        replica: this process's name; empty before ``open``.
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
        """Connect to the store and the bus. Raises ``StoreUnavailable`` or ``BusUnavailable``."""
        await self.store.open()
        try:
            await self.bus.open()
        except BaseException:
            await self.store.aclose()
            raise
        self.replica = self.new_id()

    async def aclose(self) -> None:
        """Close the connections."""
        await self.bus.aclose()
        await self.store.aclose()

    async def cancel(self, run: RunRecord) -> None:
        """Ask a run's replica to end it. The bus delivers this at once; a renewal of leases finds it in the store.

        Raises:
            StoreUnavailable: the request was not stored.
        """
        await self.store.runs.request_cancel(run.key)
        await self.send(run.replica, ReplicaCommand.CANCEL, run.key)

    async def send(self, replica: str, command: ReplicaCommand, run: RunKey, *more: str) -> None:
        """Send a command about a run to its replica. Log a failure or a timeout of the bus and return."""
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await self.bus.send(replica, encode_command(command, run, *more))
        except (BusUnavailable, TimeoutError) as error:
            logger.warning("bus send failed %s", format_fields({"run": run.run_id, "error": reason_of(error)}))

    async def publish(self, run: RunKey, envelopes: Sequence[Envelope]) -> None:
        """Publish stored events to the readers on other replicas. A reader that misses them reads the store.

        After a failure of the bus nothing is published for ``QUIET_SECONDS``, so that a broken bus does not slow runs.
        """
        now = asyncio.get_running_loop().time()
        if not envelopes or now < self._quiet_until:
            return
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await self.bus.publish(run, envelopes)
        except (BusUnavailable, TimeoutError) as error:
            self._quiet_until = now + QUIET_SECONDS
            reason = reason_of(error)
            logger.warning(
                "bus publish failed %s",
                format_fields({"run": run.run_id, "retry_in": f"{QUIET_SECONDS:g}s", "error": reason}),
            )

    def lease(self) -> float:
        """Return the end of a lease that begins now, in Unix seconds."""
        return self.clock.time() + LEASE_SECONDS


def reason_of(error: BusUnavailable | TimeoutError) -> str:
    """Return the reason of a bus call that failed, for the log."""
    return str(error) or f"the bus did not answer within {SEND_SECONDS} seconds"


def encode_command(command: ReplicaCommand, run: RunKey, *more: str) -> bytes:
    """Return a command as JSON: an array of the command, the fields of the run's key and further strings."""
    return to_json((command, *run, *more))
