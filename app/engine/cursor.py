"""A place in a run's log that moves on, and waits where there is nothing yet.

Rule: it holds nothing but its place. Who takes at once what comes is offered it before anybody is woken.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol, Self

from app.core.wire import Batch, Take


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
    """A place in a log that moves on: batches of what has come, each all that is ready.

    Ends when the run has ended and all was handed over, or when it is closed. While it waits it first offers what comes
    to who takes it at once, so that a lone event costs no switch of tasks.
    """

    __slots__ = ("_after", "_closed", "_log", "_take", "_waiter")

    def __init__(self, log: Source, after: int) -> None:
        self._log = log
        self._after = after
        self._waiter: asyncio.Future[bool] | None = None
        self._closed = False
        self._take: Take | None = None

    def __aiter__(self) -> Self:
        return self

    def offer(self, take: Take) -> None:
        """Offer what comes while this waits; what ``take`` takes is not handed out."""
        self._take = take

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

    def deliver(self, data: Sequence[bytes], after: int) -> None:
        """Have what has come taken, all of it or as much as is handed out at once, or go on."""
        if self._waiter is None:
            return
        take = self._take
        if take is None or self._after != after or not take(data, after + 1):
            self.wake()
            return
        self._after = after = after + len(data)
        if after < self._log.shown:
            self.wake()

    def nudge(self) -> None:
        """Hand out an empty batch now, if nothing else is ready."""
        self._go_on(there_is_more=False)

    def _go_on(self, *, there_is_more: bool) -> None:
        waiter, self._waiter = self._waiter, None  # so that a look at this tells whether it waits
        if waiter is not None and not waiter.done():
            waiter.set_result(there_is_more)

    def close(self) -> None:
        """End here."""
        self._closed, self._take = True, None
        self.nudge()
