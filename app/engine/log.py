"""A run's events in order: appended by one writer, read by any number of readers, replay first and then live.

Rule: the log is the only thing between a run and its readers. A reader is a position in it, so a slow reader costs
nothing and holds up nobody, and one that comes late or again sees the same bytes.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, takewhile
from typing import TypeVar

from ag_ui.core import EventType

from app.core.deltas import GoesOn
from app.core.errors import AppError, Code
from app.core.stretch import FEW, SHORT, Stretch
from app.core.wire import Batch, Envelope
from app.engine.budget import Budget
from app.engine.cursor import Cursor
from app.engine.pages import Pages
from app.engine.rendition import Encode, Rendition

V = TypeVar("V")

BATCH_BYTES, BATCH_EVENTS = 256_000, 2_000
"""What a reader is handed at once, and the event that exceeds it: replaying a long run stays small in memory."""

ENVELOPE_BYTES = 64
"""Reckoned for an envelope besides its data: what one takes that is held by itself. Those of a stretch take less."""

NOTHING = Stretch(0, b"", EventType.RAW)
"""What goes on with nothing."""


class RunLog:
    """The log of one run.

    Args:
        run_id: goes into every envelope.
        budget: what it takes from.
        on_append: told of what is to be stored before readers may see it; without it they see it at once.
    """

    # What a token touches lies together: in memory that is not at hand each object more is felt (decision 0035).
    __slots__ = (
        "_budget",
        "_count",
        "_held",
        "_in_burst",
        "_on_append",
        "_pages",
        "_rendition",
        "_stretch",
        "_waiting",
        "bytes",
        "ended",
        "goes_on",
        "is_full",
        "run_id",
        "shown",
    )

    def __init__(self, run_id: str, budget: Budget, on_append: Callable[[], None] | None = None) -> None:
        self.run_id = run_id
        self._budget = budget
        self._on_append = on_append
        self.shown = 0
        """How many events readers may see: all, or as many as are stored where they must be."""
        self.ended = False
        self.bytes = 0
        self.goes_on: GoesOn | None = None
        """Takes what goes on with the last event, if anything may."""
        self.is_full = False
        """Whether what came last was more than there was room for."""
        self._pages = Pages()
        self._count = 0
        self._stretch: Stretch = NOTHING  # what holds what goes on
        self._waiting: tuple[Cursor, ...] = ()
        self._in_burst = False
        self._rendition: Rendition | None = None
        self._held = 0

    def __len__(self) -> int:
        """How many events there are; the last one's ``seq``."""
        return self._count + len(self._stretch.fresh)

    def append(self, event_type: EventType, data: bytes) -> bool:
        """Number an encoded event and publish it. False where that is too much: only what a run owes may still come.

        Amid a burst it is published with all of the burst.
        """
        if self._stretch is not NOTHING:
            self.put_away()
        self._pages.append(event_type, data)
        self._count += 1
        self._grow(len(data) + ENVELOPE_BYTES)
        if not self._in_burst:
            self._publish()
        return not self.is_full

    def follow(self, goes_on: GoesOn) -> None:
        """Have what goes on with the last event told and held by this: it is published with its burst."""
        self.goes_on = self._stretch = goes_on
        self._pages.follow(goes_on)

    def put_away(self) -> str | Stretch | None:
        """Nothing goes on with the last event. What has been said by what went on with it, if there was anything."""
        self.goes_on = None
        stretch = self._stretch
        if stretch is NOTHING:
            return None
        self._number()
        self._stretch = NOTHING
        return self._pages.break_up(stretch) if stretch.count < FEW else stretch

    def _number(self) -> bool:
        """Put what has gone on behind what there is, and reckon it. False where nothing has."""
        stretch = self._stretch
        is_new = bool(stretch.fresh)
        if is_new:
            stretch.keep()
            self._count = stretch.end
        self._grow(stretch.weigh(ENVELOPE_BYTES))
        return is_new

    def _grow(self, size: int) -> None:
        """Take account of so many bytes of events more, and tell where that is too much."""
        self._weigh(size)
        self.is_full = self.lacks_room
        if self.is_full:
            self.goes_on = None  # so that the next event is told

    @property
    def lacks_room(self) -> bool:
        """Whether there is no room for more, by now."""
        return self._budget.is_full or self.bytes > self._budget.each

    def _weigh(self, size: int) -> None:
        """Take account of so many bytes of events more."""
        self.bytes += size
        self._hold(size)

    def _hold(self, size: int) -> None:
        """Take account of so many bytes more, in whatever encoding."""
        self._held += size
        self._budget.take(size)
        if self.ended:
            self._budget.kept += size

    def burst(self, step: Callable[[V], object], value: V, /) -> object:
        """Call a step in which more may follow at once: readers hear of it behind the step. Raises what it raises."""
        self._in_burst = True
        if self._budget.is_full:  # what goes on is let in unseen: not by every run at once
            self.goes_on = None
        try:
            return step(value)
        finally:
            del value  # an exception that is thrown in keeps this frame
            self._in_burst = False
            waiting, data = self._waiting, None
            stretch = self._stretch
            if stretch.fresh:
                if waiting:
                    data = stretch.take()
                else:
                    stretch.keep()
                self._count = stretch.end
                if len(stretch.tails) // SHORT > stretch.due:
                    self._grow(stretch.weigh(ENVELOPE_BYTES))
            after, count = self.shown, self._count
            if after < count:
                if self._on_append is None:
                    self.shown = count
                    if data is None or (count > after + 1 and (count - after > len(data) or self._is_much(data))):
                        self._deliver(after)
                    else:
                        for cursor in waiting:
                            cursor.deliver(data, after, count)
                else:
                    self._on_append()

    def settle(self) -> None:
        """Reckon what has come by now, and publish it where it is no part of a burst."""
        if self._stretch is not NOTHING and self._number() and not self._in_burst:
            self._publish()

    def _publish(self) -> None:
        if self._on_append is not None:
            self._on_append()
            return
        self.shown = self._count
        self._wake()

    def end(self) -> None:
        """Nothing more will come; readers stop after the last event."""
        self.ended = True
        self.goes_on = None
        self._budget.kept += self._held
        if self._on_append is None:
            self._publish()

    def discard(self) -> None:
        """The run has ended and nobody will read it any more."""
        self._hold(-self._held)
        self._budget = Budget(self._budget.each, self._budget.together)  # its last readers may still have it rendered

    def excess(self) -> AppError:
        """RUN_LIMIT_EXCEEDED: what was too much."""
        what = "it produced" if self.bytes > self._budget.each else "this server holds"
        return AppError(Code.RUN_LIMIT_EXCEEDED, f"The run was ended because {what} too many events.")

    def rendition(self, encode: Encode) -> Rendition:
        """The events in the one other encoding that there is, for all readers who ask for it."""
        if self._rendition is None:
            self._rendition = Rendition(encode, self._hold)
        return self._rendition

    def read(self, after: int = 0) -> Cursor:
        """Read what comes after ``seq`` ``after``, to the end of the run."""
        return Cursor(self, after)

    def data(self, after: int, last: int) -> list[bytes]:
        """The events after ``seq`` ``after`` to ``last``, as many as are handed out at once."""
        data = self._pages.read(after, last if last - after < BATCH_EVENTS else after + BATCH_EVENTS)
        if self._is_much(data):
            sizes = accumulate(map(len, data))
            del data[1 + sum(1 for _ in takewhile(lambda size: size < BATCH_BYTES, sizes)) :]
        return data

    def _is_much(self, data: Sequence[bytes]) -> bool:
        """More than is handed out at once. Most runs are short."""
        return self.bytes > BATCH_BYTES and len(data) > 1 and sum(map(len, data)) > BATCH_BYTES

    def batch(self, after: int, last: int) -> Batch:
        """``data``, and what is known of it."""
        data = self.data(after, last)
        return Batch(self.run_id, after + 1, self._pages.types(after, after + len(data)), data)

    def unstored(self) -> Batch:
        """What readers may not see yet, as much as one batch holds."""
        return self.batch(self.shown, self._count)

    def show(self, count: int) -> None:
        """Let readers see so many more events: they are stored."""
        after = self.shown
        self.shown += count
        if self.over:
            self._wake()
        else:
            self._deliver(after)

    def show_all(self) -> None:
        """Let readers see what there is and will be: nothing is stored any more."""
        self._on_append = None
        self.shown = self._count
        self._wake()

    def withdraw(self) -> None:
        """Take back what readers have not seen."""
        self.put_away()
        data = self._pages.read(self.shown, self._count)
        self._weigh(-sum(map(len, data)) - ENVELOPE_BYTES * len(data))
        self._pages.cut(self.shown)
        self._count = self.shown

    def adopt(self, envelopes: Iterable[Envelope]) -> None:
        """Let readers see what somebody else has written behind it."""
        for envelope in envelopes:
            self._pages.append(envelope.type, envelope.data)
            self._weigh(len(envelope.data) + ENVELOPE_BYTES)
            self._count += 1
        self.show(self._count - self.shown)

    @property
    def over(self) -> bool:
        """Whether readers may see all that there will be."""
        return self.ended and self.shown == self._count

    def wait(self, cursor: Cursor) -> None:
        """Have the cursor told when something is appended or the run ends."""
        self._waiting += (cursor,)

    def leave(self, cursor: Cursor) -> None:
        """It does not wait any more."""
        if cursor in self._waiting:
            self._waiting = tuple(other for other in self._waiting if other is not cursor)

    def _deliver(self, after: int) -> None:
        """Offer what comes after that number to who waits; more than is handed out at once they read themselves."""
        waiting, shown = self._waiting, self.shown
        data = self.data(after, shown) if waiting else ()
        if len(data) < shown - after:
            self._wake()
            return
        for cursor in waiting:
            cursor.deliver(data, after, shown)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, ()
        for cursor in waiting:
            cursor.wake()
