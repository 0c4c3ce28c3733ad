"""Subscriptions: positions in a run's events, from any ``seq`` on, and the presence of a run's readers.

Rule: every transport reads runs by a subscription, whether the run is in this process, in the store or on another
replica. A subscription stores only its position, so a slow reader costs nothing. A reader on another replica counts
like a local one: its replica reports it regularly, and when the reports stop, the reader no longer counts.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol, Self

from agui_container.engine.outcome import CancelReason
from agui_container.ports import Timer
from agui_container.ports.records import RunKey
from agui_container.protocol.wire.envelope import Batch

WATCH_SECONDS = 2.0
"""Shortest pause between two reports of a reader to the run's replica; twice as long while the run is silent. A grace
that is shorter than the pause ends before a report can stop it."""

REPORT_VALID_SECONDS = 6.0
"""Time that a reader on another replica counts after a report. It exceeds the pause, because reports may be late."""


class Presence:
    """The readers of one run."""

    __slots__ = ("_remote", "grace", "local", "may_be_unread")

    def __init__(self) -> None:
        self.local = 0
        """Readers of this process."""
        self.grace: Timer | None = None
        """Timer that cancels the run; set while the run has no reader in this process."""
        self.may_be_unread = False
        """True if the last reader's call ended at its deadline. The run continues without readers until another one
        subscribes."""
        self._remote: dict[str, float] | None = None

    def add_local(self) -> None:
        """Add a reader of this process and stop the timer."""
        self.local += 1
        self.may_be_unread = False
        self.stop_grace()

    def stop_grace(self) -> None:
        """Stop the timer, if there is one. It refers to the run and so to all of its events."""
        if self.grace is not None:
            self.grace.cancel()
            self.grace = None

    def remove_local(self) -> None:
        """Remove a reader of this process."""
        self.local -= 1

    def refresh_remote(self, reader: str, now: float) -> None:
        """Record a report of a reader on another replica. ``now`` is in Unix seconds."""
        self._remote = self._recent_remote(now) | {reader: now}

    def count(self, now: float) -> int:
        """Return the number of readers on all replicas."""
        return self.local + len(self._recent_remote(now))

    def is_abandoned(self, now: float) -> bool:
        """Return True if the run had a reader in this process and has none on any replica now."""
        return self.grace is not None and not self.count(now)

    def _recent_remote(self, now: float) -> dict[str, float]:
        return {reader: at for reader, at in (self._remote or {}).items() if abs(now - at) < REPORT_VALID_SECONDS}


PushBatch = Callable[[Batch], bool]
"""Writes a batch at once, or returns False if that is impossible now. Raises nothing."""


class ReadableLog(Protocol):
    """The events of a run, for readers."""

    @property
    def has_ended(self) -> bool:
        """True if the run has ended, so that no more events will come."""

    def __len__(self) -> int:
        """Number of events."""


class Readable(Protocol):
    """A run that can be read."""

    presence: Presence

    @property
    def key(self) -> RunKey:
        """Owner, thread and run."""

    @property
    def log(self) -> ReadableLog:
        """The events of the run."""

    def subscribe(self, after: int = 0, on_close: Callable[[], None] | None = None) -> "Subscription":
        """Read the events after ``seq`` ``after`` until the run ends."""

    def cancel(self, reason: CancelReason = CancelReason.CALLER) -> None:
        """Cancel the run if it is in this process."""


class Subscription(Protocol):
    """A position in a run's events; its owner is a reader.

    The iteration yields batches of all events that are ready, up to the size of a batch. It ends when the run has ended
    and all events were handed out, or when the subscription is closed. It raises ``AppError`` STORE_UNAVAILABLE if the
    events are read from a store and the store is unavailable.
    """

    @property
    def run(self) -> Readable:
        """The run of the events."""

    @property
    def is_exhausted(self) -> bool:
        """True if the run has ended and all its events were handed out."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Batch: ...

    def push_to(self, push: PushBatch) -> None:
        """Push new events while the iteration waits. A batch that ``push`` has written is not handed out again."""

    def interrupt(self) -> None:
        """Hand out an empty batch soon if the iteration waits."""

    def close(self, *, may_stay_unread: bool = False) -> None:
        """Stop reading; the iteration ends. Harmless when called again.

        If ``may_stay_unread`` is true, the run continues without readers until another one subscribes.
        """


class EventSource(Protocol):
    """The log of this process that a local subscription reads."""

    watermark: int
    has_ended: bool

    @property
    def is_complete(self) -> bool:
        """True if the run has ended and readers may see all of its events."""

    def batch(self, after: int, last: int) -> Batch:
        """Return the events after ``seq`` ``after`` up to ``last``, up to the size of a batch."""

    def add(self, subscription: "LocalSubscription") -> None:
        """Notify a subscription of new events and of the end."""

    def remove(self, subscription: "LocalSubscription") -> None:
        """Stop notifying a subscription."""


class LocalSubscription:
    """Implements ``Subscription`` for a run of this process.

    Args:
        run: the run of the events.
        log: the events.
        after: the ``seq`` after which to begin.
        on_close: called once, when the subscription is closed.
    """

    def __init__(
        self, run: Readable, log: EventSource, after: int = 0, on_close: Callable[[], None] | None = None
    ) -> None:
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
        """True if the run has ended and all its events were handed out."""
        return self._log.is_complete and self._after == self._log.watermark

    @property
    def lag(self) -> int:
        """Number of events that are ready and were not handed out."""
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
        """Push new events while the iteration waits. A batch that ``push`` has written is not handed out again."""
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
        """Hand out an empty batch if the iteration waits."""
        if self._waiter is not None and not self._waiter.done():
            self._is_interrupted = True
            self._waiter.set_result(None)

    def close(self, *, may_stay_unread: bool = False) -> None:
        """Stop reading; the iteration ends. Harmless when called again."""
        if self._is_closed:
            return
        if may_stay_unread:
            self.run.presence.may_be_unread = True
        self._is_closed, self._push = True, None
        self._log.remove(self)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        if self._on_close is not None:
            self._on_close()
