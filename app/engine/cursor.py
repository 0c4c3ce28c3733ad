"""A place in a run's log that moves on, and waits where there is nothing yet.

Rule: it holds nothing but its place. Who takes at once what comes is offered it before anybody is woken.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol, Self

from app.core.wire import Batch, Taker


class Source(Protocol):
    """What it is a place in."""

    run_id: str
    shown: int

    @property
    def over(self) -> bool:
        """Whether there will be no more."""

    def data(self, after: int, last: int) -> list[bytes]:
        """Events by their numbers, up to as many as are handed out at once."""

    def batch(self, after: int, last: int) -> Batch:
        """The same, and what is known of them."""

    def wait(self, cursor: "Cursor") -> None:
        """Have the cursor told when something is appended or the run ends."""

    def leave(self, cursor: "Cursor") -> None:
        """It does not wait any more."""


class Cursor:
    """A place in a log that moves on: batches of what has come, each as much as is ready and handed out at once.

    Ends when the run has ended and all was handed over, or when it is closed. While it waits it first offers what comes
    to who takes it at once, so that a lone event costs no switch of tasks.
    """

    __slots__ = ("_after", "_closed", "_log", "_taker", "_waiter")

    def __init__(self, log: Source, after: int) -> None:
        self._log = log
        self._after = after
        self._waiter: asyncio.Future[bool] | None = None
        self._closed = False
        self._taker: Taker | None = None

    def __aiter__(self) -> Self:
        return self

    def offer(self, taker: Taker) -> None:
        """Offer what comes while this waits; what ``taker`` takes is not handed out."""
        self._taker = taker

    async def __anext__(self) -> Batch:
        """What comes next; empty only where ``nudge`` asked for it."""
        log = self._log
        while not self._closed:
            batch = log.batch(self._after, log.shown)
            if batch.data:
                self._after += len(batch.data)
                return batch
            if log.over:
                break
            self._waiter = waiter = asyncio.get_running_loop().create_future()
            log.wait(self)
            try:
                if not await waiter and not self._closed:
                    return Batch(log.run_id, self._after + 1, [], [])
            finally:
                log.leave(self)
        raise StopAsyncIteration

    def wake(self) -> None:
        """Go on: there is something, or the run has ended."""
        self._go_on(there_is_more=True)

    def deliver(self, data: Sequence[bytes], after: int, last: int) -> None:
        """Have what has come taken, or go on: ``data`` has the events after number ``after`` to ``last``."""
        if self._waiter is None:
            return
        taker = self._taker
        if taker is None or self._after != after or not taker.take(data, after + 1):
            self.wake()
        else:
            self._after = last

    def nudge(self) -> None:
        """Hand out an empty batch now, if nothing else is ready."""
        self._go_on(there_is_more=False)

    def _go_on(self, *, there_is_more: bool) -> None:
        waiter, self._waiter = self._waiter, None  # so that a look at this tells whether it waits
        if waiter is not None and not waiter.done():
            waiter.set_result(there_is_more)

    def close(self) -> None:
        """End here."""
        self._closed, self._taker = True, None
        self.nudge()
