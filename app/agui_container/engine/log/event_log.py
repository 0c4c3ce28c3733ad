"""Events of one run, in order: appended by one writer, read by any number of subscriptions, replay first and then live.

Rule: the log is the only thing between a run and its readers. A subscription is a position in it, so a slow reader
costs nothing and delays nobody, and a late one sees the same bytes. An append marks the log as dirty; the flusher makes
the new events visible once per turn of the event loop, so that one write carries all that is ready and no write begins
in the agent's task.
"""

import asyncio
import logging
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from contextvars import Context
from itertools import accumulate, pairwise

from ag_ui.core import EventType

from agui_container.engine.log.log_budget import LogBudget
from agui_container.engine.log.subscription import LocalSubscription
from agui_container.engine.log.transcoded_log import EncodeEvent, TranscodedLog
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.wire.envelope import Batch, Envelope

logger = logging.getLogger(__name__)

BATCH_BYTES, BATCH_EVENTS = 256_000, 2_000
"""Size of a batch; it ends with the event that exceeds it. Replaying a long run stays small in memory."""

ENVELOPE_BYTES = 64
"""Counted for each event besides its JSON: offsets, type, and what lists and arrays allocate ahead."""


class EventLog:
    """The log of one run.

    Args:
        run_id: goes into every envelope.
        budget: limits what this log and all logs together may hold.
        flusher: flushes the dirty logs of the process.
        on_flush: called with new events that must be stored before readers may see them. Without it they see them at
            once.
    """

    def __init__(
        self, run_id: str, budget: LogBudget, flusher: "Flusher", on_flush: Callable[[], None] | None = None
    ) -> None:
        self.run_id = run_id
        self.watermark = 0
        """Number of events that readers may see: all that were flushed, or as many of them as are stored."""
        self.has_ended = False
        self.bytes = 0
        """Size of the run by the events it has produced."""
        self._budget = budget
        self._flusher = flusher
        self._on_flush = on_flush
        self._is_dirty = False
        self._types: list[EventType] = []
        self._unflushed: list[bytes] = []
        self._buffer = bytearray()
        """The JSON of all flushed events, one behind another."""
        self._ends = array("Q")
        """Where each of them ends in the buffer."""
        self._latest: list[bytes] = []
        """The events of the flush in progress, as they were appended."""
        self._subscriptions: tuple[LocalSubscription, ...] = ()
        self._transcoded: TranscodedLog | None = None
        self._held_bytes = 0

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
        self._hold(size)
        if not self._is_dirty:
            self._mark_dirty()

    def end(self) -> None:
        """Record that nothing more will come. Subscriptions stop after the last event."""
        self.has_ended = True
        self._budget.kept_bytes += self._held_bytes
        self._mark_dirty()

    def _mark_dirty(self) -> None:
        if not self._is_dirty:
            self._is_dirty = True
            self._flusher.add(self)

    def flush(self) -> None:
        """Make what was appended readable, or have it stored first."""
        self._is_dirty = False
        self._latest = self._merge_unflushed()
        if self._on_flush is None:
            self._publish(len(self._ends))
        else:
            self._on_flush()
        self._latest = []

    def _merge_unflushed(self) -> list[bytes]:
        """Move what was appended to the buffer. Returns these events."""
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
        """Events that are not stored yet, as many as one batch holds."""
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
        removed = size - len(self._buffer) - ENVELOPE_BYTES * len(self._ends)
        self.bytes -= removed
        self._hold(-removed)

    def append_foreign(self, envelopes: Iterable[Envelope]) -> None:
        """Append what another replica has written to this run, and let readers see it."""
        for envelope in envelopes:
            self.append(envelope.type, envelope.data)
        self._merge_unflushed()
        self._publish(len(self._ends))

    # --- limits ---

    def _hold(self, size: int) -> None:
        """Count memory that the log holds, in whatever encoding. The run's own limit concerns its events only."""
        self._held_bytes += size
        self._budget.used_bytes += size
        if self.has_ended:
            self._budget.kept_bytes += size

    @property
    def has_room(self) -> bool:
        """Whether the agent may append more. What a run owes before its end may always be appended."""
        return self.bytes <= self._budget.run_bytes and self._budget.used_bytes <= self._budget.all_bytes

    def limit_error(self) -> AppError:
        """RUN_LIMIT_EXCEEDED, with the limit that was exceeded."""
        what = "it produced" if self.bytes > self._budget.run_bytes else "this server holds"
        return AppError(ErrorCode.RUN_LIMIT_EXCEEDED, f"The run was ended because {what} too many events.")

    def discard(self) -> None:
        """Give the memory back to the budget. The run has ended and can no longer be found."""
        self._hold(-self._held_bytes)
        self._budget = LogBudget(self._budget.run_bytes, self._budget.all_bytes)  # an open subscription may transcode

    # --- reading ---

    @property
    def is_complete(self) -> bool:
        """Whether the run has ended and readers may see all of it."""
        return self.has_ended and self.watermark == len(self._types)

    def add(self, subscription: LocalSubscription) -> None:
        """Notify a subscription of new events and of the end."""
        self._subscriptions += (subscription,)

    def remove(self, subscription: LocalSubscription) -> None:
        """Stop notifying a subscription. Harmless when called again."""
        self._subscriptions = tuple(each for each in self._subscriptions if each is not subscription)

    def batch(self, after: int, last: int) -> Batch:
        """Events after ``seq`` ``after`` up to ``last``, as many as one batch holds."""
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

    def transcoded(self, encode: EncodeEvent) -> TranscodedLog:
        """The events in the one other encoding that there is, shared by all subscriptions that need it."""
        if self._transcoded is None:
            self._transcoded = TranscodedLog(encode, self._hold)
        return self._transcoded


class Flusher:
    """Flushes the dirty logs of a process, once per turn of the event loop."""

    def __init__(self) -> None:
        self._dirty: list[EventLog] = []
        self._scheduled_on: asyncio.AbstractEventLoop | None = None
        self._context = Context()

    def add(self, log: EventLog) -> None:
        """Flush a log in the next turn."""
        self._dirty.append(log)
        loop = asyncio.get_running_loop()
        if self._scheduled_on is not loop:  # an application may outlive an event loop that was closed before its turn
            self._scheduled_on = loop
            loop.call_soon(self._flush, context=self._context)

    def _flush(self) -> None:
        self._scheduled_on = None
        dirty, self._dirty = self._dirty, []
        for log in dirty:
            try:
                log.flush()
            except Exception:
                logger.exception("flush failed run=%s", log.run_id)
