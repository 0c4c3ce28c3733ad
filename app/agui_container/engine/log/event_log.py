"""Events of one run, in order: appended by one writer, read by any number of subscriptions, replay first and then live.

Rule: the log is the only thing between a run and its readers. A subscription is a position in it, so a slow reader
costs nothing and delays no other, and a late one reads the same bytes. An append marks the log as dirty; the flusher
makes the new events visible once per turn of the event loop, so that one write carries all ready events and no write
begins in the agent's task.
"""

import asyncio
import logging
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from contextvars import Context
from itertools import accumulate, pairwise

from ag_ui.core import EventType
from msgspec import Struct

from agui_container.engine.admission.quota import IdentityQuota, Limit
from agui_container.engine.log.subscription import LocalSubscription
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.wire.envelope import Batch, Envelope
from agui_container.runtime.log_values import format_fields

logger = logging.getLogger(__name__)

BATCH_BYTES, BATCH_EVENTS = 256_000, 2_000
"""Limits of a batch. It ends with the event that exceeds one of them, so a replay of a long run needs little memory."""

ENVELOPE_BYTES = 64
"""Counted for each event besides its JSON: offsets, type, and what lists and arrays allocate ahead."""


class LogMemory(Struct, frozen=True):
    """Memory limits of a log.

    Attributes:
        run_bytes: limit of the run's events. The event that exceeds it is still appended.
        quota: what the identity of the run has in use. The events count in it.
    """

    run_bytes: int
    quota: IdentityQuota


class EventLog:
    """The log of one run.

    Args:
        run_id: the run id of every envelope.
        memory: limits the memory of this log and of all logs together.
        flusher: flushes the dirty logs of the process.
        on_flush: called when there are new events, which must be stored before readers may see them. Without it readers
            see new events at once.
    """

    def __init__(
        self, run_id: str, memory: LogMemory, flusher: "Flusher", on_flush: Callable[[], None] | None = None
    ) -> None:
        self.run_id = run_id
        self.watermark = 0
        """Number of events that readers may see: all flushed events, or all stored ones if events are stored first."""
        self.has_ended = False
        self.bytes = 0
        """Size of the run by the events it has produced."""
        self._run_bytes = memory.run_bytes
        self.quota = memory.quota
        """Amounts that the identity of the run has in use."""
        self._amounts = memory.quota.amounts(Limit.LOG_BYTES)
        self._flusher = flusher
        self._on_flush = on_flush
        self._is_dirty = False
        self._types: list[EventType] = []
        self._unflushed: list[bytes] = []
        self._buffer = bytearray()
        """The JSON of all flushed events, one behind another."""
        self._ends = array("Q")
        """End of each event in the buffer."""
        self._latest: list[bytes] = []
        """The events of the flush in progress, as they were appended."""
        self._subscriptions: tuple[LocalSubscription, ...] = ()

    def __len__(self) -> int:
        """Number of events; the last one's ``seq``."""
        return len(self._types)

    # --- writing ---

    def append(self, event_type: EventType, data: bytes) -> None:
        """Number an encoded event and mark the log as dirty."""
        self._types.append(event_type)
        self._unflushed.append(data)
        size = len(data) + ENVELOPE_BYTES
        self.bytes += size
        for amount in self._amounts:
            amount.used += size
        if not self._is_dirty:
            self._mark_dirty()

    def end(self) -> None:
        """Record that nothing more will come. Subscriptions stop after the last event."""
        self.has_ended = True
        self._mark_dirty()

    def _mark_dirty(self) -> None:
        if not self._is_dirty:
            self._is_dirty = True
            self._flusher.add(self)

    def flush(self) -> int:
        """Make the appended events readable, or have them stored first. Return their number."""
        self._is_dirty = False
        self._latest = self._merge_unflushed()
        count = len(self._latest)
        if self._on_flush is None:
            self._publish(len(self._ends))
        else:
            self._on_flush()
        self._latest = []
        return count

    def _merge_unflushed(self) -> list[bytes]:
        """Move the appended events to the buffer and return them."""
        events, self._unflushed = self._unflushed, []
        ends = accumulate(map(len, events), initial=len(self._buffer))
        next(ends)  # where the first one starts
        self._ends.extend(ends)
        self._buffer += b"".join(events)
        return events

    def _publish(self, watermark: int) -> None:
        self.watermark = watermark
        for subscription in self._subscriptions:
            subscription.notify()

    # --- storing ---

    def unpersisted(self) -> Batch:
        """Return the events that are not stored yet, up to the size of a batch."""
        self._merge_unflushed()
        return self.batch(self.watermark, len(self._ends))

    def advance(self, count: int) -> None:
        """Let readers see ``count`` more events, because they are stored."""
        self._publish(self.watermark + count)

    def release_all(self) -> None:
        """Let readers see all events from now on, because nothing is stored any more."""
        self._on_flush = None
        self._mark_dirty()

    def rollback_unpublished(self) -> None:
        """Remove the events that readers have not seen."""
        self._merge_unflushed()
        size = len(self._buffer) + ENVELOPE_BYTES * len(self._ends)
        del self._types[self.watermark :], self._ends[self.watermark :]
        del self._buffer[self._ends[-1] if self._ends else 0 :]
        self._count(len(self._buffer) + ENVELOPE_BYTES * len(self._ends) - size)

    def append_foreign(self, envelopes: Iterable[Envelope]) -> None:
        """Append the events that another replica has stored for this run, and let readers see them."""
        for envelope in envelopes:
            self.append(envelope.type, envelope.data)
        self._merge_unflushed()
        self._publish(len(self._ends))

    # --- limits ---

    def _count(self, size: int) -> None:
        self.bytes += size
        for amount in self._amounts:
            amount.used += size

    @property
    def has_room(self) -> bool:
        """True if the agent may append more events. The closing events of a run may always be appended."""
        if self.bytes > self._run_bytes:
            return False
        for amount in self._amounts:  # noqa: SIM110 - for each event, and a generator costs more than the loop
            if amount.used > amount.most:
                return False
        return True

    def limit_error(self) -> AppError:
        """Return the error with the limit that was exceeded, which is logged as all refusals are.

        RUN_LIMIT_EXCEEDED if the run itself is too large, RATE_LIMIT_EXCEEDED if the same run may succeed later.
        """
        if self.bytes > self._run_bytes:
            return AppError(ErrorCode.RUN_LIMIT_EXCEEDED, "The run was ended because it produced too many events.")
        full = next((amount for amount in self._amounts if amount.used > amount.most), self._amounts[-1])
        return self.quota.refusal(full)

    def discard(self) -> None:
        """Give the memory back. The run has ended and can no longer be found."""
        self._count(-self.bytes)

    # --- reading ---

    @property
    def is_complete(self) -> bool:
        """True if the run has ended and readers may see all of its events."""
        return self.has_ended and self.watermark == len(self._types)

    def add(self, subscription: LocalSubscription) -> None:
        """Notify a subscription of new events and of the end."""
        self._subscriptions += (subscription,)

    def remove(self, subscription: LocalSubscription) -> None:
        """Stop notifying a subscription. Harmless when called again."""
        self._subscriptions = tuple(each for each in self._subscriptions if each is not subscription)

    @property
    def longest_lag(self) -> int:
        """Number of events that the slowest subscription has not handed out. Any thread may ask."""
        return max((subscription.lag for subscription in self._subscriptions), default=0)

    def batch(self, after: int, last: int) -> Batch:
        """Return the events after ``seq`` ``after`` up to ``last``, up to the size of a batch."""
        ends = self._ends[after : min(last, after + BATCH_EVENTS)]
        start = self._ends[after - 1] if after else 0
        if ends and ends[-1] - start > BATCH_BYTES:
            del ends[bisect_left(ends, start + BATCH_BYTES) + 1 :]
        count = len(ends)
        if count == len(self._latest) and after + count == len(self._ends):
            data = self._latest  # most subscriptions have read everything else, and need no copy
        else:
            events = bytes(self._buffer[start : ends[-1] if ends else start])
            data = [events[begin - start : end - start] for begin, end in pairwise((start, *ends))]
        return Batch(self.run_id, after + 1, self._types[after : after + count], data)


class Flusher:
    """Flushes the dirty logs of a process, once per turn of the event loop.

    Attributes:
        event_count: all events that were flushed.
    """

    def __init__(self) -> None:
        self.event_count = 0
        self._dirty: list[EventLog] = []
        self._scheduled_on: asyncio.AbstractEventLoop | None = None
        self._context = Context()

    def add(self, log: EventLog) -> None:
        """Flush a log in the next turn."""
        self._dirty.append(log)
        loop = asyncio.get_running_loop()
        if self._scheduled_on is not loop:  # the previous event loop may have been closed before the flush
            self._scheduled_on = loop
            loop.call_soon(self._flush, context=self._context)

    def _flush(self) -> None:
        self._scheduled_on = None
        dirty, self._dirty = self._dirty, []
        for log in dirty:
            try:
                self.event_count += log.flush()
            except Exception:
                logger.exception("flush failed %s", format_fields({"run": log.run_id}))
