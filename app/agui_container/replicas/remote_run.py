"""A run of another replica: its events are read from the store, and then from the bus.

Rule: every event is delivered exactly once. A gap on the bus is filled from the store. If the bus is silent, the
record in the store says whether the run is still active. Every reader gets a terminal event, also if the run is deleted
in the meantime. No events are kept in memory, so a slow reader costs nothing.
"""

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Self, TypeVar

from ag_ui.core import EventType

from agui_container.log_values import format_fields
from agui_container.ports.agent import maybe_aclosing
from agui_container.ports.bus import BusUnavailable, EventGap
from agui_container.ports.records import RunKey, RunRecord
from agui_container.ports.store import DurableStore, store_errors_as_app_errors, wait_for_store
from agui_container.protocol.envelope import Batch, Envelope
from agui_container.protocol.errors import AppError, ErrorCode, run_error
from agui_container.run.cluster import Cluster
from agui_container.run.endings import number_events
from agui_container.run.subscription import OnClose, PushBatch

T = TypeVar("T")

logger = logging.getLogger(__name__)

SILENCE_SECONDS, LONGEST_SILENCE = 0.25, 2.0
"""Shortest and longest silence of the bus before the store is read.

The pause doubles each time the store has no new events.
"""

REPORT_SECONDS = 2.0
"""Shortest pause between two reports of a reader; twice as long while the run is silent. A grace that is shorter than
the pause ends before a report can stop it."""

TERMINAL = (EventType.RUN_FINISHED, EventType.RUN_ERROR)

DELETED = AppError(ErrorCode.RUN_LOST, "This run was deleted while it was being read.")


class RemoteRun:
    """Implements ``Readable`` for a stored run."""

    def __init__(self, cluster: Cluster, store: DurableStore, record: RunRecord) -> None:
        self.record = record
        self.log = RemoteLog(record)
        self._cluster = cluster
        self._store = store

    @property
    def key(self) -> RunKey:
        return self.record.key

    def subscribe(self, after: int = 0, on_close: OnClose | None = None) -> "RemoteSubscription":
        return RemoteSubscription(self, self._cluster, self._store, after, on_close)


class RemoteLog:
    """Implements ``ReadableLog`` by a run's record."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record

    def __len__(self) -> int:
        return self._record.last_seq

    @property
    def has_ended(self) -> bool:
        return not self._record.is_open


class RemoteSubscription:
    """Implements ``Subscription`` for a run that is not in this process."""

    lag = 0

    def __init__(
        self, run: RemoteRun, cluster: Cluster, store: DurableStore, after: int, on_close: OnClose | None
    ) -> None:
        record = run.record
        self.run = run
        self.is_exhausted = not record.is_open and after == record.last_seq
        self._cluster = cluster
        self._store = store
        self._key = record.key
        self._started_at = record.started_at
        self._after = after
        self._on_close = on_close
        self._is_closed = self._is_interrupted = False
        self._report_at = -math.inf
        self._batches = self._read()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        return await anext(self._batches)

    def push_to(self, push: PushBatch) -> None:
        """Ignore ``push``: the iteration reads every batch from the store or the bus."""

    def interrupt(self) -> None:
        """Hand out an empty batch when the bus is silent next."""
        self._is_interrupted = True

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            if self._on_close is not None:
                self._on_close(self)

    async def _read(self) -> AsyncIterator[Batch]:
        silence = SILENCE_SECONDS
        while not (self._is_closed or self.is_exhausted):
            before, envelopes = self._after, await self._with_retries(self._read_store)
            # Read after the envelopes: if another run has reused the ids since, they may be that run's.
            record = await self._with_retries(self._look_up)
            if record is None:
                error = run_error(DELETED)
                yield self._advance(number_events(self._key.run_id, self._after, [error]))
            elif envelopes:
                silence = SILENCE_SECONDS
                yield self._advance(envelopes)
            elif record.is_open:
                async with aclosing(self._follow_bus(silence)) as batches:
                    async for batch in batches:
                        yield batch
                        if self.is_exhausted:
                            return
                silence = SILENCE_SECONDS if self._after > before else min(2 * silence, LONGEST_SILENCE)
            elif record.last_seq <= self._after:
                return

    async def _look_up(self) -> RunRecord | None:
        """Return the record of the run, or None if it was deleted. Report this reader if it is time to."""
        record = await self._store.run(self._key)
        if record is None or record.started_at != self._started_at:
            return None
        if record.is_open:
            await self._report_reader()
        return record

    async def _report_reader(self) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._report_at:
            await self._store.report_reader(self._key)
            self._report_at = now + REPORT_SECONDS

    async def _read_store(self) -> Sequence[Envelope]:
        return await self._store.envelopes(self._key, self._after)

    async def _with_retries(self, read: Callable[[], Awaitable[T]]) -> T:
        """Read the store. Retry for as long as the run's own replica would, then raise ``AppError``."""
        with store_errors_as_app_errors():
            return await wait_for_store(read, self._key.run_id, lambda: not self._is_closed)

    async def _follow_bus(self, silence: float) -> AsyncGenerator[Batch, None]:
        """Iterate until the bus is silent, fails, has lost events, or this reader must be reported again."""
        try:
            async with maybe_aclosing(self._cluster.bus.follow(self._key, self._after, silence)) as batches:
                async for envelopes in batches:
                    if self._is_closed:
                        return
                    if not envelopes:
                        break
                    yield self._advance(envelopes)
                    if asyncio.get_running_loop().time() >= self._report_at:
                        return
        except EventGap:
            return
        except BusUnavailable as error:
            logger.warning("bus read failed %s", format_fields({"run": self._key.run_id, "error": error}))
            await asyncio.sleep(silence)
        if self._is_interrupted and not self._is_closed:
            self._is_interrupted = False
            yield Batch(self._key.run_id, self._after + 1, [], [])

    def _advance(self, envelopes: Sequence[Envelope]) -> Batch:
        first = self._after + 1
        self._after, self.is_exhausted = envelopes[-1].seq, envelopes[-1].type in TERMINAL
        return Batch(self._key.run_id, first, [each.type for each in envelopes], [each.data for each in envelopes])
