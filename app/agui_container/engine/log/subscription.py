"""A subscription: a position in a run's events, from any ``seq`` on.

Rule: every transport reads through this, wherever the run is: in this process, in the store, or on another replica. It
holds nothing but its position, so a slow reader costs nothing.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol, Self

from agui_container.engine.log.presence import Presence
from agui_container.engine.log.transcoded_log import EncodeEvent, TranscodedLog
from agui_container.ports.records import RunKey
from agui_container.protocol.wire.envelope import Batch

PushBatch = Callable[[Batch], bool]
"""Writes a batch at once, or returns False if that is impossible now. Raises nothing."""


class ReadableLog(Protocol):
    """The events of a run, for those who read them."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come."""

    def __len__(self) -> int:
        """Number of events."""

    def transcoded(self, encode: EncodeEvent) -> TranscodedLog:
        """The events in another encoding."""


class Readable(Protocol):
    """A run that can be read."""

    presence: Presence

    @property
    def key(self) -> RunKey:
        """Owner, thread and run."""

    @property
    def log(self) -> ReadableLog:
        """Its events."""

    def subscribe(self, after: int = 0, on_close: Callable[[], None] | None = None) -> "Subscription":
        """Read the events after ``seq`` ``after`` until the run ends."""

    def cancel(self) -> None:
        """End it as cancelled, if it is this process's to end."""


class Subscription(Protocol):
    """A position in a run's events; its owner is a reader.

    Iterating gives batches: what has come since, as much as is ready and fits one batch. It ends when the run has ended
    and all was handed out, or when the subscription is closed. Raises ``AppError`` STORE_UNAVAILABLE where the events
    are read from a store that does not answer.
    """

    @property
    def run(self) -> Readable:
        """The run that is read."""

    @property
    def is_exhausted(self) -> bool:
        """Whether all events were handed out that will ever come."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Batch: ...

    def push_to(self, push: PushBatch) -> None:
        """Push what becomes ready while the iteration waits; a batch that is written is not handed out again."""

    def interrupt(self) -> None:
        """Hand out an empty batch soon if the iteration waits."""

    def close(self) -> None:
        """Stop reading; the iteration ends. Harmless when called again."""


class EventSource(Protocol):
    """The log of this process that a local subscription reads."""

    watermark: int
    has_ended: bool

    @property
    def is_complete(self) -> bool:
        """Whether the run has ended and readers may see all of it."""

    def batch(self, after: int, last: int) -> Batch:
        """Events after ``seq`` ``after`` up to ``last``, as many as one batch holds."""

    def add(self, subscription: "LocalSubscription") -> None:
        """Notify a subscription of new events and of the end."""

    def remove(self, subscription: "LocalSubscription") -> None:
        """Stop notifying a subscription."""


class LocalSubscription:
    """Implements ``Subscription`` for a run of this process.

    Args:
        run: what is read.
        log: its events.
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
        """Whether all events were handed out that will ever come."""
        return self._log.is_complete and self._after == self._log.watermark

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        """The next batch; an empty one after ``interrupt``."""
        while not self._is_closed:
            if self._is_interrupted or self._after < self._log.watermark:
                self._is_interrupted = False
                return self._take()
            if self._log.is_complete:
                break
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        raise StopAsyncIteration

    def _take(self) -> Batch:
        batch = self._log.batch(self._after, self._log.watermark)
        self._after += len(batch.data)
        return batch

    def push_to(self, push: PushBatch) -> None:
        """Push what becomes ready while the iteration waits; a batch that is written is not handed out again."""
        self._push = push

    def notify(self) -> None:
        """Push what is ready, or wake the iteration. Nothing if it does not wait: it will find the events itself."""
        if self._waiter is not None and not self._waiter.done() and not self._has_pushed():
            self._waiter.set_result(None)

    def _has_pushed(self) -> bool:
        """Whether all that is ready has been written. The end of a run is left to the iteration."""
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

    def close(self) -> None:
        """Stop reading; the iteration ends. Harmless when called again."""
        if self._is_closed:
            return
        self._is_closed, self._push = True, None
        self._log.remove(self)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        if self._on_close is not None:
            self._on_close()
