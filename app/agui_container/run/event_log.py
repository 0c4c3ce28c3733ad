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
from typing import Self

from ag_ui.core import EventType
from msgspec import Struct

from agui_container.log_values import format_fields
from agui_container.protocol.envelope import Batch, Envelope
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.run.subscription import OnClose, PushBatch, Readable

logger = logging.getLogger(__name__)

BATCH_BYTES, BATCH_EVENTS = 256_000, 2_000
"""Limits of a batch. It ends with the event that exceeds one of them, so a replay of a long run needs little memory."""

ENVELOPE_BYTES = 64
"""Counted for each event besides its JSON: offsets, type, and what lists and arrays allocate ahead."""


class LogMemory(Struct):
    """Bytes of the logs of one process. The event that exceeds a limit is still appended.

    Attributes:
        run_bytes: limit of one log.
        all_bytes: limit of all logs.
        refusal: makes the error for a log that grows while all logs are at their limit.
        used: bytes of all logs.
        logs: number of logs.
    """

    run_bytes: int
    all_bytes: int
    refusal: Callable[[], AppError]
    used: int = 0
    logs: int = 0


class EventLog:
    def __init__(
        self, run_id: str, memory: LogMemory, flusher: "Flusher", on_flush: Callable[[], None] | None = None
    ) -> None:
        self.run_id = run_id
        self.watermark = 0
        """Number of events that readers may see: all flushed events, or all stored ones if events are stored first."""
        self.stored = 0
        """Number of events that a store has, if one outlives this process."""
        self.has_ended = False
        self.bytes = 0
        """Size of the run by the events it has produced."""
        self._memory = memory
        memory.logs += 1
        self._flusher = flusher
        self._on_flush = on_flush
        self._held_from: int | None = None
        self._is_dirty = False
        self._types: list[EventType] = []
        self._unflushed: list[bytes] = []
        self._uncounted = 0
        self._buffer = bytearray()
        """The JSON of all flushed events, one behind another."""
        self._ends = array("Q")
        """End of each event in the buffer."""
        self._latest: list[bytes] = []
        """The events of the flush in progress, as they were appended."""
        self._subscriptions: tuple[LocalSubscription, ...] = ()

    def __len__(self) -> int:
        return len(self._types)

    # --- writing ---

    def append(self, event_type: EventType, data: bytes) -> None:
        """Number an encoded event and mark the log as dirty."""
        self._types.append(event_type)
        self._unflushed.append(data)
        size = len(data) + ENVELOPE_BYTES
        self.bytes += size
        self._memory.used += size
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
        """Make the appended events readable, or have them stored first. Return the number since the last flush."""
        self._is_dirty = False
        self._latest = self._merge_unflushed()
        count, self._uncounted = self._uncounted, 0
        if self._on_flush is None:
            self._publish(len(self._ends) if self._held_from is None else self._held_from)
        else:
            self._on_flush()
        self._latest = []
        return count

    def _merge_unflushed(self) -> list[bytes]:
        events, self._unflushed = self._unflushed, []
        self._uncounted += len(events)
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

    def unstored(self) -> Batch:
        """Return the events that are not stored yet, up to the size of a batch."""
        self._merge_unflushed()
        return self.batch(self.stored, len(self._ends))

    def advance(self, count: int) -> None:
        """Record that the next events are stored, and let readers see them."""
        self.stored += count
        if self._on_flush is not None:
            self._publish(self.stored)

    def hold(self) -> None:
        """Keep the events that are appended from now on from readers, until ``release``."""
        self._held_from = len(self)

    @property
    def is_held(self) -> bool:
        return self._held_from is not None

    def release(self) -> None:
        """Let readers see all events from now on, whether they are stored or not."""
        self._on_flush = self._held_from = None
        self._mark_dirty()

    def replace_unread(self, envelopes: Iterable[Envelope]) -> None:
        """Put other events in place of those that readers have not seen, and let readers see them."""
        self._merge_unflushed()
        size = len(self._buffer) + ENVELOPE_BYTES * len(self._ends)
        del self._types[self.watermark :], self._ends[self.watermark :]
        del self._buffer[self._ends[-1] if self._ends else 0 :]
        self._count(len(self._buffer) + ENVELOPE_BYTES * len(self._ends) - size)
        for envelope in envelopes:
            self.append(envelope.type, envelope.data)
        self._merge_unflushed()
        self._publish(len(self._ends))

    # --- limits ---

    def _count(self, size: int) -> None:
        self.bytes += size
        self._memory.used += size

    @property
    def has_room(self) -> bool:
        """True if the agent may append more events. The closing events of a run may always be appended.

        If all logs are at their limit, a log with less than its share has room, so that one flood ends no other run.
        """
        memory = self._memory
        has_share = memory.used <= memory.all_bytes or self.bytes * memory.logs <= memory.all_bytes
        return has_share and self.bytes <= memory.run_bytes

    def limit_error(self) -> AppError:
        """RUN_LIMIT_EXCEEDED if the run itself is too large, RATE_LIMIT_EXCEEDED if the same run may succeed later."""
        if self.bytes > self._memory.run_bytes:
            return AppError(ErrorCode.RUN_LIMIT_EXCEEDED, "The run was ended because it produced too many events.")
        return self._memory.refusal()

    def discard(self) -> None:
        """Give the memory back. The run has ended and can no longer be found."""
        self._count(-self.bytes)
        self._memory.logs -= 1

    # --- reading ---

    @property
    def is_complete(self) -> bool:
        return self.has_ended and self.watermark == len(self._types)

    def add(self, subscription: "LocalSubscription") -> None:
        self._subscriptions += (subscription,)

    def remove(self, subscription: "LocalSubscription") -> None:
        self._subscriptions = tuple(each for each in self._subscriptions if each is not subscription)

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


class LocalSubscription:
    """Implements ``Subscription`` for a run of this process."""

    def __init__(self, run: Readable, log: EventLog, after: int = 0, on_close: OnClose | None = None) -> None:
        self.run = run
        self._log = log
        self._after = after
        self._on_close = on_close
        self._push: PushBatch | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._is_closed = self._is_interrupted = False
        log.add(self)

    @property
    def is_exhausted(self) -> bool:
        return self._log.is_complete and self._after == self._log.watermark

    @property
    def lag(self) -> int:
        return self._log.watermark - self._after

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        """Return the next batch; an empty one after ``interrupt``."""
        while not self._is_closed:
            if self._is_interrupted or self._after < self._log.watermark:
                self._is_interrupted = False
                return self._next_batch()
            if self._log.is_complete:
                break
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        raise StopAsyncIteration

    def _next_batch(self) -> Batch:
        batch = self._log.batch(self._after, self._log.watermark)
        self._after += len(batch.data)
        return batch

    def push_to(self, push: PushBatch) -> None:
        self._push = push

    def notify(self) -> None:
        """Push the ready events, or wake the iteration. If the iteration does not wait, it finds the events itself."""
        if self._waiter is not None and not self._waiter.done() and not self._push_ready():
            self._waiter.set_result(None)

    def _push_ready(self) -> bool:
        """Push the ready events. Return True if all are written. The iteration handles the end of a run."""
        if self._push is None or self._log.has_ended:
            return False
        if self._after == self._log.watermark:
            return True
        batch = self._log.batch(self._after, self._log.watermark)
        if self._push(batch):
            self._after += len(batch.data)
        return self._after == self._log.watermark

    def interrupt(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._is_interrupted = True
            self._waiter.set_result(None)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed, self._push = True, None
        self._log.remove(self)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        if self._on_close is not None:
            self._on_close(self)


class Flusher:
    """Flushes the dirty logs of a process, once per turn of the event loop."""

    def __init__(self) -> None:
        self.event_count = 0
        self._dirty: list[EventLog] = []
        self._scheduled_on: asyncio.AbstractEventLoop | None = None
        self._context = Context()

    def add(self, log: EventLog) -> None:
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
