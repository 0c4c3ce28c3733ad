"""A place in a run's log that moves on, and waits where there is nothing yet.

Rule: it holds nothing but its place. Who takes at once what comes is offered it, and needs no coroutine that waits.
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

    Ends when the run has ended and all was handed over, or when it is closed. Where somebody takes what comes at once,
    it ends as well where there is nothing yet, and ``rests``: what is not taken, it is to be iterated for again.
    """

    __slots__ = ("_after", "_closed", "_log", "_taker", "_waiter", "rests")

    def __init__(self, log: Source, after: int) -> None:
        self._log = log
        self._after = after
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False
        self._taker: Taker | None = None
        self.rests = False
        """Whether the iteration ended because there was nothing yet."""

    def __aiter__(self) -> Self:
        return self

    def offer(self, taker: Taker) -> None:
        """Offer what comes from now on; what ``taker`` takes is not handed out. Nothing once it is closed."""
        if not self._closed:
            self._taker = taker

    @property
    def waits(self) -> bool:
        """Whether the iteration waits where there is nothing yet."""
        return self._taker is None

    @property
    def over(self) -> bool:
        """Whether all was handed out that will come."""
        return self._log.over and self._after == self._log.shown

    async def __anext__(self) -> Batch:
        """What comes next."""
        log = self._log
        if self.rests:
            self.rests = False
            log.leave(self)
        while not self._closed:
            if self._after < log.shown:
                batch = log.batch(self._after, log.shown)
                self._after += len(batch.data)
                return batch
            if log.over:
                break
            log.wait(self)
            if not self.waits:
                self.rests = True
                break
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                log.leave(self)
        raise StopAsyncIteration

    def wake(self) -> None:
        """Go on: there is something, or the run has ended."""
        if self._taker is not None:
            self._log.leave(self)  # until it rests again
            self._taker.read_on()
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def deliver(self, data: Sequence[bytes], after: int, last: int) -> None:
        """Have what has come taken, or go on: ``data`` has the events after number ``after`` to ``last``."""
        taker = self._taker
        if taker is not None and self._after == after and taker.take(data, after + 1):
            self._after = last
        else:
            self.wake()

    def nudge(self) -> None:
        """Nothing: who takes what comes does not wait here."""

    def close(self) -> None:
        """End here."""
        self._closed, self._taker = True, None
        self._log.leave(self)
        self.wake()
