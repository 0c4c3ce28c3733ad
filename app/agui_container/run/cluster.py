"""The cluster of replicas on one store and bus, as one of them uses it: its name, and what it publishes.

Rule: a failure of the bus fails no run, because the store has everything that the bus carries. The replica name is made
when the process opens, because a restored snapshot of the process must not share it.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from agui_container.log_values import format_fields
from agui_container.ports import Clock
from agui_container.ports.bus import Bus, BusUnavailable
from agui_container.ports.records import Ending, RunKey, RunRecord, ThreadKey
from agui_container.ports.store import DurableStore, RunQuery, Store
from agui_container.protocol.envelope import Envelope
from agui_container.protocol.token_usage import USAGE, count_tokens

LEASE_SECONDS = 8.0
"""Duration of a lease. A run whose lease is not renewed may be taken over by another replica."""

PUBLISH_SECONDS = 0.5
"""Longest wait of a run for the bus."""

QUIET_SECONDS = 5.0
"""Pause of publishing after a bus call has failed."""

logger = logging.getLogger(__name__)


class ThreadEnds:
    """Ends of runs on the threads of this process, for runs that wait for their thread."""

    def __init__(self) -> None:
        self._events: dict[ThreadKey, asyncio.Event] = {}

    async def wait(self, thread: ThreadKey, seconds: float) -> None:
        """Wait until a run of a thread has been stored here, for ``seconds`` at most."""
        event = self._events.setdefault(thread, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            self._events.pop(thread, None)

    def notify(self, thread: ThreadKey) -> None:
        if (event := self._events.pop(thread, None)) is not None:
            event.set()


class Cluster:
    """All replicas on one store and one bus, as this process sees them. A process on its own is a cluster of one."""

    def __init__(self, store: Store, bus: Bus, clock: Clock, *, new_id: Callable[[], str], day_tokens: int = 0) -> None:
        self.store = store
        self.day_tokens = day_tokens
        """Tokens that an owner's runs may use in a day; 0 is no limit."""
        self.bus = bus
        self.clock = clock
        self.durable = store if isinstance(store, DurableStore) else None
        """The store if runs and their events outlive the process in it."""
        self.replica = ""
        self.new_id = new_id
        self.thread_ends = ThreadEnds()
        self.enqueuing = asyncio.Lock()
        """Held while a run is stored as a waiting one, so that the store has the order in which the runs came."""
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

    async def finish(self, run: RunKey, envelopes: Sequence[Envelope], ending: Ending) -> None:
        """Store the end of a run of this replica, with its tokens if there is a limit of them. Raises as the store."""
        if self.day_tokens:
            ending = replace(ending, tokens=count_tokens(USAGE.validate_json(ending.usage or b"[]")))
        await self.store.finish(run, self.replica, envelopes, ending)

    async def cancel(self, run: RunRecord) -> None:
        """Ask a run's replica to end it. The replica finds this in the store at the next renewal of its leases."""
        if self.durable is not None:
            await self.durable.cancel(run.key)

    async def cancel_thread(self, thread: ThreadKey) -> bool:
        """Ask other replicas to end their runs of a thread, the waiting ones first. Return True if a run is open."""
        if self.durable is None:
            return False
        found = (await self.durable.runs(RunQuery(thread.owner, thread.thread_id, is_open=True))).items
        for record in found:
            if record.replica != self.replica and not record.is_cancel_requested:
                await self.cancel(record)
        return bool(found)

    async def publish(self, run: RunKey, envelopes: Sequence[Envelope]) -> None:
        """Publish stored events to the readers on other replicas. A reader that misses them reads the store.

        After a failure of the bus nothing is published for ``QUIET_SECONDS``, so that a broken bus does not slow runs.
        """
        now = asyncio.get_running_loop().time()
        if now < self._quiet_until:
            return
        try:
            async with asyncio.timeout(PUBLISH_SECONDS):
                await self.bus.publish(run, envelopes)
        except (BusUnavailable, TimeoutError) as error:
            self._quiet_until = now + QUIET_SECONDS
            reason = str(error) or f"the bus did not answer within {PUBLISH_SECONDS} seconds"
            logger.warning(
                "bus publish failed %s",
                format_fields({"run": run.run_id, "retry_in": f"{QUIET_SECONDS:g}s", "error": reason}),
            )
