"""The open subscriptions of one process, and what the end of one means for its run.

Rule: the last reader to leave may end the run (``OnDisconnect``); a reader on another replica prevents that.
"""

import asyncio
import contextlib
from functools import partial

from agui_container.engine.log.subscription import Readable, Subscription
from agui_container.engine.policy import OnDisconnect
from agui_container.engine.registry.registry import RunRegistry
from agui_container.engine.run.run import Run
from agui_container.ports import Clock
from agui_container.protocol.errors import AppError, ErrorCode


class Subscriptions:
    """Opens subscriptions and notices when they are closed.

    Args:
        lifecycle: keeps the logs of ended runs that are read.
        on_disconnect: what becomes of a run that nobody reads.
    """

    def __init__(self, registry: RunRegistry, on_disconnect: OnDisconnect, clock: Clock) -> None:
        self._registry = registry
        self._on_disconnect = on_disconnect
        self._clock = clock
        self._open = 0
        self._all_gone: asyncio.Event | None = None
        self._one_gone: asyncio.Event | None = None
        """There only while somebody waits for it."""

    def open(self, run: Readable, after: int) -> Subscription:
        """Read a run from ``after`` on. Raises ``AppError`` VALIDATION_ERROR for a cursor ahead of it."""
        if after > len(run.log):
            raise AppError(ErrorCode.VALIDATION_ERROR, "after: the run has not come that far.")
        run.presence.add_local()
        self._open += 1
        return run.subscribe(after, partial(self._on_close, run))

    def remote_reader_seen(self, run: Run, reader: str) -> None:
        """A reader on another replica says that it is there."""
        run.presence.refresh_remote(reader, self._clock.time())
        if run.presence.grace is not None:
            run.presence.grace.cancel()
            self._abandon(run)

    def _on_close(self, run: Readable) -> None:
        run.presence.remove_local()
        self._open -= 1
        if self._all_gone is not None and not self._open:
            self._all_gone.set()
        if not run.presence.local:
            self._abandon(run)
        if self._one_gone is not None:
            self._one_gone.set()
            self._one_gone = None

    def _abandon(self, run: Readable) -> None:
        """Nobody reads this run here any more."""
        grace = self._on_disconnect.grace
        if run.log.has_ended:
            self._registry.run_unread(run)
        elif grace == 0:
            run.cancel()
        elif grace is not None:
            run.presence.grace = self._clock.call_later(grace, run.cancel)

    async def wait_for_close(self, deadline: float) -> None:
        """Until the next one leaves, or the event loop's time is ``deadline``."""
        self._one_gone = gone = self._one_gone or asyncio.Event()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                await gone.wait()

    async def wait_all_closed(self, seconds: float) -> None:
        """Until nobody reads any more, for ``seconds`` at most."""
        self._all_gone = asyncio.Event()
        if self._open:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_gone.wait(), seconds)
