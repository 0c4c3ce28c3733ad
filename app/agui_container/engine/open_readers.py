"""The open subscriptions of one process.

Rule: every subscription is opened here, so that the run knows its readers, a shutdown waits for those that read the end
of a run, and metrics count all.
"""

import asyncio
import contextlib

from agui_container.engine.registry import TURN_SECONDS, RunRegistry
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.run.run import Run
from agui_container.run.subscription import Readable, Subscription


class OpenReaders:
    def __init__(self, registry: RunRegistry) -> None:
        self._registry = registry
        self._open: dict[Subscription, None] = {}
        self._one_closed: asyncio.Event | None = None
        """None while no task waits for it."""

    @property
    def open_count(self) -> int:
        return len(self._open)

    @property
    def longest_lag(self) -> int:
        """Number of events that the slowest reader of this process's runs has not been given. Any thread may ask."""
        return max((subscription.lag for subscription in list(self._open)), default=0)

    def open(self, run: Readable, after: int) -> Subscription:
        """Read the events of a run after ``seq`` ``after``. Raises ``AppError`` VALIDATION_ERROR if that is ahead."""
        if after > len(run.log):
            raise AppError(ErrorCode.VALIDATION_ERROR, "after: is ahead of the last event of the run.")
        if isinstance(run, Run):
            run.readers.enter()
        subscription = run.subscribe(after, self._on_close)
        self._open[subscription] = None
        return subscription

    def _on_close(self, subscription: Subscription, may_stay_unread: bool) -> None:  # noqa: FBT001 - as OnClose
        del self._open[subscription]
        if isinstance(run := subscription.run, Run):
            run.readers.leave(may_stay_unread=may_stay_unread)
            self._registry.release_unread(run)
        if self._one_closed is not None:
            self._one_closed.set()
            self._one_closed = None

    async def wait_for_close(self, deadline: float) -> None:
        self._one_closed = closed = self._one_closed or asyncio.Event()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                await closed.wait()

    async def wait_all_closed(self, seconds: float) -> None:
        """Wait as long as readers close within ``seconds``, which are counted in turns as in ``RunRegistry.drain``."""
        loop, turns = asyncio.get_running_loop(), seconds / TURN_SECONDS
        while turns > 0 and (count := self._count_at_end()):
            await self.wait_for_close(loop.time() + TURN_SECONDS)
            turns -= self._count_at_end() == count

    def _count_at_end(self) -> int:
        return sum(subscription.run.log.has_ended for subscription in self._open)
