"""A run's events in order: appended by one writer, read by any number of readers, replay first and then live.

Rule: the log is the only thing between a run and its readers. A reader is a position in it, so a slow reader costs
nothing and holds up nobody, and one that comes late or again sees the same bytes.
"""

import asyncio
from collections.abc import Callable, Iterable
from itertools import accumulate, takewhile
from typing import Self, TypeVar

from ag_ui.core import EventType

from app.core.deltas import GoesOn
from app.core.errors import AppError, Code
from app.core.wire import Batch, Envelope, Take
from app.engine.rendition import Encode, Rendition

V = TypeVar("V")

BATCH_BYTES, BATCH_EVENTS = 256_000, 2_000
"""What a reader is handed at once, so that replaying a long run to a slow reader stays small in memory."""

ENVELOPE_BYTES = 64
"""What an envelope takes in memory besides its data: the head of the bytes, and its places in two lists."""


class Budget:
    """Bytes that logs may hold: each one at most, and all of a process together.

    Args:
        each: encoded events of one run.
        together: encoded events of all runs, open and kept.
    """

    def __init__(self, each: int, together: int) -> None:
        self.each = each
        self.together = together
        self.used = 0
        self.kept = 0
        """The part of ``used`` that logs of ended runs hold."""


class RunLog:
    """The log of one run.

    Args:
        run_id: goes into every envelope.
        budget: what it takes from.
        on_append: told of what is to be stored before readers may see it; without it they see it at once.
    """

    _following: EventType
    """Of what is not reckoned yet: data without a type."""

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
        self._types: list[EventType] = []
        self._data: list[bytes] = []
        self._waiting: set[Cursor] = set()
        self._in_burst = False
        self._rendition: Rendition | None = None
        self._rendered = 0

    def __len__(self) -> int:
        """How many events there are; the last one's ``seq``."""
        return len(self._data)

    @property
    def _held(self) -> int:
        """Bytes in all encodings."""
        return self.bytes + self._rendered

    def append(self, event_type: EventType, data: bytes) -> bool:
        """Number an encoded event and publish it. False where that is too much: only what a run owes may still come.

        Amid a burst it is published with all of the burst.
        """
        if len(self._types) < len(self._data):
            self._reckon()
        self.follow(event_type)(data)
        fits = self._reckon()
        if not self._in_burst:
            self._publish()
        return fits

    def follow(self, event_type: EventType) -> Callable[[bytes], None]:
        """Where the JSON of more events of one type goes: they are reckoned and published with their burst."""
        self._following = event_type
        return self._data.append

    def _reckon(self) -> bool:
        """Take account of what has come. False where that is too much."""
        data, types, budget = self._data, self._types, self._budget
        count = len(data) - len(types)
        if count == 1:  # a token that comes alone
            types.append(self._following)
            size = len(data[-1]) + ENVELOPE_BYTES
        else:
            types += [self._following] * count
            size = sum(map(len, data[-count:])) + ENVELOPE_BYTES * count
        self.bytes = held = self.bytes + size
        budget.used = used = budget.used + size
        if held <= budget.each and used <= budget.together:
            return True
        self.goes_on = None  # so that the next event is told
        return False

    def burst(self, step: Callable[[V], object], value: V, /) -> object:
        """Call a step in which more may follow at once: readers hear of it behind the step. Raises what it raises."""
        self._in_burst = True
        try:
            return step(value)
        finally:
            del value  # an exception that is thrown in keeps this frame
            self._in_burst = False
            if len(self._types) < len(self._data):
                self._reckon()
            if self._on_append is None:
                self.shown = len(self._data)
                if self._waiting:
                    self._deliver()
            elif self.shown < len(self._data):
                self._on_append()

    def settle(self) -> None:
        """Reckon what has come by now, and publish it where it is no part of a burst."""
        if len(self._types) < len(self._data):
            self._reckon()
            if not self._in_burst:
                self._publish()

    def _publish(self) -> None:
        if self._on_append is not None:
            self._on_append()
            return
        self.shown = len(self._data)
        if self._waiting:
            self._wake()

    def end(self) -> None:
        """Nothing more will come; readers stop after the last event."""
        self.ended = True
        self._budget.kept += self._held
        if self._on_append is None:
            self._publish()

    def discard(self) -> None:
        """The run has ended and nobody will read it any more."""
        self._budget.used -= self._held
        self._budget.kept -= self._held
        self._budget = Budget(self._budget.each, self._budget.together)  # its last readers may still have it rendered

    def excess(self) -> AppError:
        """RUN_LIMIT_EXCEEDED: what was too much."""
        if self.bytes > self._budget.each:
            return AppError(Code.RUN_LIMIT_EXCEEDED, "The run was ended because it produced too many events.")
        return AppError(Code.RUN_LIMIT_EXCEEDED, "The run was ended because this server holds too many events.")

    def rendition(self, encode: Encode) -> Rendition:
        """The events in the one other encoding that there is, for all readers who ask for it."""
        if self._rendition is None:
            self._rendition = Rendition(encode, self._keep)
        return self._rendition

    def _keep(self, size: int) -> None:
        self._rendered += size
        self._budget.used += size
        if self.ended:
            self._budget.kept += size

    def read(self, after: int = 0) -> "Cursor":
        """Read what comes after ``seq`` ``after``, to the end of the run."""
        return Cursor(self, after)

    def data(self, after: int, last: int) -> list[bytes]:
        """The events after ``seq`` ``after`` to ``last``, up to ``BATCH_BYTES`` and the event that exceeds them."""
        last = last if last - after < BATCH_EVENTS else after + BATCH_EVENTS
        data = self._data[after:last]
        if len(data) > 1 and self.bytes > BATCH_BYTES and sum(map(len, data)) > BATCH_BYTES:  # most runs are short
            sizes = accumulate(map(len, data))
            del data[1 + sum(1 for _ in takewhile(lambda size: size < BATCH_BYTES, sizes)) :]
        return data

    def batch(self, after: int, last: int) -> Batch:
        """``data``, and what is known of it."""
        data = self.data(after, last)
        return Batch(self.run_id, after + 1, self._types[after : after + len(data)], data)

    def unstored(self) -> Batch:
        """What readers may not see yet, as much as one batch holds."""
        return self.batch(self.shown, len(self._data))

    def show(self, count: int) -> None:
        """Let readers see so many more events: they are stored."""
        self.shown += count
        if self.over:
            self._wake()
        else:
            self._deliver()

    def show_all(self) -> None:
        """Let readers see what there is and will be: nothing is stored any more."""
        self._on_append = None
        self.shown = len(self._data)
        self._wake()

    def withdraw(self) -> None:
        """Take back what readers have not seen."""
        for data in self._data[self.shown :]:
            self._weigh(-len(data) - ENVELOPE_BYTES)
        del self._data[self.shown :], self._types[self.shown :]

    def adopt(self, envelopes: Iterable[Envelope]) -> None:
        """Let readers see what somebody else has written behind it."""
        for envelope in envelopes:
            self._types.append(envelope.type)
            self._data.append(envelope.data)
            self._weigh(len(envelope.data) + ENVELOPE_BYTES)
        self.show(len(self._data) - self.shown)

    def _weigh(self, size: int) -> None:
        self.bytes += size
        self._budget.used += size
        if self.ended:
            self._budget.kept += size

    @property
    def over(self) -> bool:
        """Whether readers may see all that there will be."""
        return self.ended and self.shown == len(self._data)

    def wait(self, cursor: "Cursor") -> None:
        """Have the cursor told when something is appended or the run ends."""
        self._waiting.add(cursor)

    def leave(self, cursor: "Cursor") -> None:
        """It does not wait any more."""
        self._waiting.discard(cursor)

    def _wake(self) -> None:
        for cursor in self._waiting:
            cursor.wake()
        self._waiting.clear()

    def _deliver(self) -> None:
        for cursor in tuple(self._waiting):
            cursor.deliver()


class Cursor:
    """A place in a log that moves on: batches of what has come, each all that is ready.

    Ends when the run has ended and all was handed over, or when it is closed. While it waits it first offers what comes
    to who takes it at once, so that a lone event costs no switch of tasks.
    """

    __slots__ = ("_after", "_closed", "_log", "_take", "_waiter")

    def __init__(self, log: RunLog, after: int) -> None:
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
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(True)

    def deliver(self) -> None:
        """Have what there is taken, or go on."""
        waiter, after, shown = self._waiter, self._after, self._log.shown
        if waiter is None or waiter.done() or after >= shown:
            return
        take, data = self._take, self._log.data(after, shown)
        if take is None or not take(data, after + 1):
            waiter.set_result(True)
            return
        self._after = after = after + len(data)
        if after < shown:
            self.wake()

    def nudge(self) -> None:
        """Hand out an empty batch now, if nothing else is ready."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(False)

    def close(self) -> None:
        """End here."""
        self._closed, self._take = True, None
        self.nudge()
