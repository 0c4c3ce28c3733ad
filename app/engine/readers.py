"""The readers of one process: they come, they leave, and what that means for the run.

Rule: the last reader to leave may end the run (``OnDisconnect``); one on another replica holds up a grace.
"""

import asyncio
import contextlib

from app.engine.lifecycle import Lifecycle
from app.engine.policy import OnDisconnect
from app.engine.reader import Readable, Reader
from app.engine.run import Run
from app.ports import Clock


class Readers:
    """Who reads what.

    Args:
        lifecycle: keeps the logs of ended runs that are read.
        on_disconnect: what becomes of a run that nobody reads.
    """

    def __init__(self, lifecycle: Lifecycle, on_disconnect: OnDisconnect, clock: Clock) -> None:
        self._lifecycle = lifecycle
        self._on_disconnect = on_disconnect
        self._clock = clock
        self._open = 0
        self._all_gone: asyncio.Event | None = None
        self._one_gone: asyncio.Event | None = None
        """There only while somebody waits for it."""

    def read(self, run: Readable, after: int) -> Reader:
        """Read a run from ``after`` on. Raises ``AppError`` VALIDATION_ERROR for a cursor ahead of it."""
        reader = Reader(run, after, self._left)
        self._open += 1
        return reader

    def heard(self, run: Run, reader: str) -> None:
        """A reader on another replica says that it is there."""
        run.audience.hear(reader, self._clock.time())
        if run.audience.grace is not None:
            run.audience.grace.cancel()
            self._abandon(run)

    def _left(self, run: Readable) -> None:
        self._open -= 1
        if self._all_gone is not None and not self._open:
            self._all_gone.set()
        if not run.audience.here:
            self._abandon(run)
        if self._one_gone is not None:
            self._one_gone.set()
            self._one_gone = None

    def _abandon(self, run: Readable) -> None:
        """Nobody reads this run here any more."""
        grace = self._on_disconnect.grace
        if run.log.ended:
            self._lifecycle.unread(run)
        elif grace == 0:
            run.cancel()
        elif grace is not None:
            run.audience.grace = self._clock.call_later(grace, run.cancel)

    async def one_gone(self, deadline: float) -> None:
        """Until the next one leaves, or the event loop's time is ``deadline``."""
        self._one_gone = gone = self._one_gone or asyncio.Event()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                await gone.wait()

    async def all_gone(self, seconds: float) -> None:
        """Until nobody reads any more, for ``seconds`` at most."""
        self._all_gone = asyncio.Event()
        if self._open:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_gone.wait(), seconds)
