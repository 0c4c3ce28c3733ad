"""The readers of one process: they open subscriptions, and a run whose last reader leaves may be cancelled.

Rule: a run without readers may be cancelled (``OnDisconnect``). A reader on another replica prevents that, and so does
a call that ended at its deadline: the run continues without readers until another one subscribes.
"""

import asyncio
import contextlib
from collections import Counter
from functools import partial

from agui_container.engine.admission.quota import Limit, Quota, QuotaLease
from agui_container.engine.log.subscription import Readable, Subscription
from agui_container.engine.outcome import CancelReason
from agui_container.engine.policy import OnDisconnect
from agui_container.engine.registry.registry import TURN_SECONDS, RunRegistry
from agui_container.engine.run.run import Run
from agui_container.ports import Caller, Clock
from agui_container.ports.records import RunKey
from agui_container.protocol.errors import AppError, ErrorCode


class Readers:
    """Opens the subscriptions of readers, and acts when a reader leaves.

    Args:
        registry: stores ended runs while they are read.
        quota: limits the number of readers.
        on_disconnect: the time after which a run without readers is cancelled.
        clock: the time and timers.
    """

    def __init__(self, registry: RunRegistry, quota: Quota, on_disconnect: OnDisconnect, clock: Clock) -> None:
        self._registry = registry
        self._quota = quota
        self._on_disconnect = on_disconnect
        self._clock = clock
        self._readers: Counter[Readable] = Counter()
        self._one_closed: asyncio.Event | None = None
        """None while no task waits for it."""

    @property
    def open_count(self) -> int:
        """Number of readers."""
        return self._readers.total()

    @property
    def longest_lag(self) -> int:
        """Number of events that the slowest reader of this process's runs has not been given. Any thread may ask."""
        return max((run.log.longest_lag for run in list(self._readers) if isinstance(run, Run)), default=0)

    def open(self, run: Readable, after: int, caller: Caller) -> Subscription:
        """Read the events of a run after ``seq`` ``after``.

        Raises:
            AppError: VALIDATION_ERROR if ``after`` is ahead of the run; RATE_LIMIT_EXCEEDED if the identity or
                the process has too many open readers.
        """
        if after > len(run.log):
            raise AppError(ErrorCode.VALIDATION_ERROR, "after: is ahead of the last event of the run.")
        lease = self._quota.of(caller.identity).acquire(Limit.STREAMS)
        if isinstance(run, Run):
            self._registry.unread.discard(run)
        run.presence.add_local()
        self._readers[run] += 1
        return run.subscribe(after, partial(self._on_close, run, lease))

    def remote_reader_seen(self, key: RunKey, reader: str) -> None:
        """Record a reader on another replica, and restart the grace of a run without local readers.

        Does nothing if the run is not in this process.
        """
        if (run := self._registry.get(key)) is None:
            return
        run.presence.refresh_remote(reader, self._clock.time())
        if run.presence.grace is not None:
            run.presence.stop_grace()
            self._handle_unread(run)

    def _on_close(self, run: Readable, lease: QuotaLease) -> None:
        lease.release()
        run.presence.remove_local()
        self._readers[run] -= 1
        if not self._readers[run]:
            del self._readers[run]
        if not run.presence.local:
            self._handle_unread(run)
        if self._one_closed is not None:
            self._one_closed.set()
            self._one_closed = None

    def _handle_unread(self, run: Readable) -> None:
        """Trim, cancel or start the grace of a run that has no reader in this process."""
        grace = None if run.presence.may_be_unread else self._on_disconnect.grace
        if run.log.has_ended:
            self._registry.release_unread(run)
        elif grace == 0:
            run.cancel(CancelReason.DISCONNECT)
        elif grace is not None:
            run.presence.grace = self._clock.call_later(grace, partial(run.cancel, CancelReason.DISCONNECT))
            if isinstance(run, Run):
                self._registry.unread.add(run)

    async def wait_for_close(self, deadline: float) -> None:
        """Wait until a subscription closes, or the event loop's time is ``deadline``."""
        self._one_closed = closed = self._one_closed or asyncio.Event()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                await closed.wait()

    async def wait_all_closed(self, seconds: float) -> None:
        """Wait until the readers of ended runs have closed, for ``seconds`` at most without one that closes.

        The seconds are counted in turns, as those of ``RunRegistry.drain``.
        """
        loop, turns = asyncio.get_running_loop(), seconds / TURN_SECONDS
        while turns > 0 and (count := self._count_at_end()):
            await self.wait_for_close(loop.time() + TURN_SECONDS)
            turns -= self._count_at_end() == count

    def _count_at_end(self) -> int:
        """Return the number of readers of runs that have ended. A run on another replica may continue."""
        return sum(count for run, count in self._readers.items() if run.log.has_ended)


async def wait_with(subscription: Subscription) -> Subscription:
    """Wait until the run of a subscription is active or queued. Closes it, and raises the error, if it is refused."""
    try:
        if isinstance(subscription.run, Run):
            await subscription.run.admission.wait()
    except BaseException:
        subscription.close()
        raise
    return subscription
