"""A watcher of a run, wherever the run is: in this process, in the store, or in another replica.

Rule: every transport reads through this. The last reader to leave may end the run (``OnDisconnect``).
"""

from collections.abc import Callable
from typing import Protocol, Self

from app.core.errors import AppError, Code
from app.core.wire import Batch, Taker
from app.engine.audience import Audience
from app.engine.rendition import Encode, Rendition
from app.ports.records import RunKey


class Place(Protocol):
    """A place in a log that moves on: batches of what has come."""

    @property
    def waits(self) -> bool:
        """Whether the iteration waits where there is nothing yet."""

    @property
    def rests(self) -> bool:
        """Whether it ended there instead: who takes what comes is told when to go on."""

    @property
    def over(self) -> bool:
        """Whether all was handed out that will come."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Batch: ...

    def offer(self, taker: Taker) -> None:
        """Offer what comes from now on, where it comes at once; what ``taker`` takes is not handed out."""

    def nudge(self) -> None:
        """Hand out an empty batch soon, where it is waited for what comes."""

    def close(self) -> None:
        """End here."""


class Log(Protocol):
    """A run's events, to be read."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""

    def __len__(self) -> int:
        """How many events there are."""

    def read(self, after: int = 0) -> Place:
        """Read what comes after ``seq`` ``after``, to the end of the run."""

    def rendition(self, encode: Encode) -> Rendition:
        """The events in another encoding."""


class Readable(Protocol):
    """A run, to be read."""

    audience: Audience

    @property
    def key(self) -> RunKey:
        """Owner, thread and run."""

    @property
    def log(self) -> Log:
        """Its events."""

    def cancel(self) -> None:
        """End it as cancelled, if it is here to be ended."""


class Reader:
    """One watcher, from its creation until ``close``.

    Attributes:
        at_end: whether it begins behind the last event of a run that has ended, so that nothing comes.
    """

    __slots__ = ("_on_close", "_place", "at_end", "run")

    def __init__(self, run: Readable, after: int, on_close: Callable[[Readable], None]) -> None:
        if after > len(run.log):
            raise AppError(Code.VALIDATION_ERROR, "after: the run has not come that far.")
        self.run = run
        self.at_end = run.log.ended and after == len(run.log)
        self._place = run.log.read(after)
        self._on_close: Callable[[Readable], None] | None = on_close
        run.audience.enter()

    def __aiter__(self) -> Place:
        return self._place

    @property
    def waits(self) -> bool:
        """Whether the iteration waits where there is nothing yet."""
        return self._place.waits

    @property
    def rests(self) -> bool:
        """Whether it ended there instead: who takes what comes is told when to go on."""
        return self._place.rests

    @property
    def over(self) -> bool:
        """Whether all was handed out that will come."""
        return self._place.over

    def offer(self, taker: Taker) -> None:
        """Have what comes offered from now on; what ``taker`` takes is not handed out."""
        self._place.offer(taker)

    def nudge(self) -> None:
        """Have an iteration that waits give an empty batch."""
        self._place.nudge()

    def close(self) -> None:
        """Stop watching; the iteration ends. Harmless when called again."""
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            self._place.close()
            self.run.audience.leave()
            on_close(self.run)
