"""A run's events in order: appended by one writer, read by any number of readers, replay first and then live.

Rule: the log is the only thing between a run and its readers. A reader is a position in it, so a slow reader costs
nothing and holds up nobody, and one that comes late or again sees the same bytes.
"""

import asyncio
from collections.abc import AsyncIterator

from ag_ui.core import BaseEvent, EventType

from app.core.errors import AppError, Code
from app.core.wire import Envelope, encode
from app.engine.rendition import Encode, Rendition

BATCH_BYTES = 256_000
"""Bytes a reader is handed at once, so that replaying a long run to a slow reader stays small in memory."""


ENVELOPE_BYTES = 150
"""What an envelope takes in memory besides its data."""


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


class RunLog:
    """The log of one run.

    Args:
        run_id: goes into every envelope.
        budget: what it takes from.
    """

    def __init__(self, run_id: str, budget: Budget) -> None:
        self.run_id = run_id
        self._budget = budget
        self.ended = False
        self.bytes = 0
        self._envelopes: list[Envelope] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._rendition: Rendition | None = None
        self._rendered = 0

    def __len__(self) -> int:
        """How many events there are; the last one's ``seq``."""
        return len(self._envelopes)

    @property
    def held(self) -> int:
        """Bytes that are kept, in all encodings."""
        return self.bytes + self._rendered

    def append(self, event_type: EventType, data: bytes) -> None:
        """Number an encoded event and publish it."""
        self._envelopes.append(Envelope(self.run_id, len(self._envelopes) + 1, event_type, data))
        size = len(data) + ENVELOPE_BYTES
        self.bytes += size
        self._budget.used += size
        self._wake()

    def end(self) -> None:
        """Nothing more will come; readers stop after the last event."""
        self.ended = True
        self._wake()

    def forget(self) -> None:
        """Nobody will read it any more."""
        self._budget.used -= self.held

    def check(self) -> None:
        """Raises ``AppError`` RUN_LIMIT_EXCEEDED when there is too much. What a run owes may still be appended."""
        if self.bytes > self._budget.each:
            raise AppError(Code.RUN_LIMIT_EXCEEDED, "The run was ended because it produced too many events.")
        if self._budget.used > self._budget.together:
            raise AppError(Code.RUN_LIMIT_EXCEEDED, "The run was ended because this server holds too many events.")

    def rendition(self, encode: Encode) -> Rendition:
        """The events in the one other encoding that there is, for all readers who ask for it."""
        if self._rendition is None:
            self._rendition = Rendition(encode, self._keep)
        return self._rendition

    def _keep(self, size: int) -> None:
        self._rendered += size
        self._budget.used += size

    def _wake(self) -> None:
        for reader in self._waiting:
            if not reader.done():
                reader.set_result(None)
        self._waiting.clear()

    async def read(self, after: int = 0) -> AsyncIterator[list[Envelope]]:
        """Batches of what comes after ``seq`` ``after``, each holding all that is ready up to ``BATCH_BYTES``.

        Ends when the run has ended and all was handed over.
        """
        while True:
            batch = self._batch(after)
            if batch:
                after += len(batch)
                yield batch
            elif self.ended:
                return
            else:
                await self._wait()

    async def _wait(self) -> None:
        news = asyncio.get_running_loop().create_future()
        self._waiting.append(news)
        try:
            await news
        except asyncio.CancelledError:
            if news in self._waiting:
                self._waiting.remove(news)
            raise

    def _batch(self, after: int) -> list[Envelope]:
        size, end = 0, after
        while end < len(self._envelopes) and size < BATCH_BYTES:
            size += len(self._envelopes[end].data)
            end += 1
        return self._envelopes[after:end]


def encoded(event: BaseEvent) -> tuple[EventType, bytes]:
    """What ``append`` takes. Raises ``IllegalEvent``, so call it before anything depends on the event."""
    return event.type, encode(event)
