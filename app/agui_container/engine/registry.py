"""Registry of one process: open runs by thread, ended runs that can still be read, their tasks, and open readers.

Rule: at most one run of a thread is active; the others are queued in the order in which they came. Every task is owned
here and awaited in ``drain``. Memory is bounded (``CapacityLimits``). Only ended runs without readers are removed to
stay within the limits.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence

from agui_container.engine.health import Health
from agui_container.engine.limits import CapacityLimits, Quota
from agui_container.ports.records import RunKey, ThreadKey
from agui_container.protocol.errors import AppError, ErrorCode, validation_error
from agui_container.run.endings import CancelReason, start_failed_error
from agui_container.run.event_log import Flusher
from agui_container.run.fairness import FairScheduler
from agui_container.run.life import RunPhase
from agui_container.run.run import Run
from agui_container.run.subscription import Readable, Subscription
from agui_container.telemetry.export import make_exporter

logger = logging.getLogger(__name__)

REQUEST_SECONDS = 0.1
"""Wait before telemetry is exported. The span of a request ends shortly after its run."""

UNWIND_SECONDS = 1.0
"""Longest wait of ``drain`` for agents that were cancelled. Agents that still block then end with the process."""


class RunRegistry:
    """The runs of one process."""

    def __init__(self, limits: CapacityLimits, quota: Quota, health: Health) -> None:
        self.flusher = Flusher()
        self.scheduler = FairScheduler()
        self._limits = limits
        self.quota = quota
        self._health = health
        self.queues: dict[ThreadKey, list[Run]] = {}
        """Runs by thread: the active one, then those that wait for it. A run that has ended while it waited stays,
        because its messages are stored in its turn."""
        self.by_key: dict[RunKey, Run] = {}
        self._ended: dict[Run, int] = {}
        """Ended runs with the bytes of their logs, the oldest first."""
        self._ended_bytes = 0
        self.tasks: set[asyncio.Task[None]] = set()
        """Tasks of agents, and background work."""
        self._background: set[asyncio.Task[None]] = set()
        self.lives: dict[Run, asyncio.Task[None]] = {}
        """Task of each run from its request until its end is stored."""

    # --- look-up ---

    def is_storing(self, thread: ThreadKey) -> bool:
        """Return True if a run of a thread is not stored to its end."""
        return any(run.thread == thread for run in self.lives)

    def open_run_ids(self) -> list[str]:
        return [run.key.run_id for run in self.lives if not run.log.has_ended]

    @property
    def open_count(self) -> int:
        return len(self.by_key) - len(self._ended)

    @property
    def queued_count(self) -> int:
        """Number of open runs that wait for another run on their thread. Any thread may ask."""
        return max(0, self.open_count - len(self.queues))

    def open_queue(self, thread: ThreadKey) -> tuple[Run, ...]:
        """Return the open runs of a thread: the active one, then the queued ones in order."""
        queue = self.queues.get(thread)
        return tuple([run for run in queue if not run.log.has_ended]) if queue else ()

    def newest_first(self, owner: str, thread_id: str | None = None, run_id: str | None = None) -> Iterator[Run]:
        """Iterate the owner's runs. Two threads may have runs with the same id. Nothing may change meanwhile."""
        return (
            run
            for key, run in reversed(self.by_key.items())
            if key.owner == owner and thread_id in (None, key.thread_id) and run_id in (None, key.run_id)
        )

    def open_runs(self) -> Sequence[Run]:
        return [run for run in self.by_key.values() if not run.log.has_ended]

    # --- lifecycle ---

    def add(self, run: Run, life: Coroutine[object, object, None]) -> None:
        """Add a run with the coroutine that admits and stores it."""
        self.by_key[run.key] = run
        self.lives[run] = asyncio.create_task(life, name=f"life of run {run.key.run_id}")
        self._update_health()

    def enter_queue(self, run: Run, to_cancel: Sequence[Run]) -> None:
        """Put a run in the queue of its thread. A refused run ends no other.

        ``to_cancel`` are open runs of the same thread, which end first.

        Raises:
            AppError: THREAD_BUSY if the queue is full, RATE_LIMIT_EXCEEDED if a limit leaves no room.
        """
        if len(self.queues.get(run.thread, ())) - len(to_cancel) > self._limits.queued_runs:
            raise AppError(ErrorCode.THREAD_BUSY, "Too many runs are waiting on this thread.")
        self.quota.take(run.ctx.caller.identity, [other.ctx.caller.identity for other in to_cancel])
        for other in reversed(to_cancel):
            other.cancel(CancelReason.NEW_RUN)
        queue = self.queues.setdefault(run.thread, [])
        queue.append(run)
        if queue[0] is not run:
            run.turn = asyncio.Event()

    def own_task(self, task: asyncio.Task[None]) -> None:
        self.tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def run_ended(self, run: Run) -> None:
        """Free the thread of an ended run, give the next one in the queue its turn, and keep the log for late readers.

        An in-memory store has this end before the next run's claim, because the end was handed to the recorder before.
        """
        queue = self.queues.get(run.thread, [])
        if run in queue:
            self.quota.release(run.ctx.caller.identity)
            if run is queue[0] or run.life.is_dropped:
                self._leave_queue(run)
        if run.life.is_dropped:
            self._remove(run)
        else:
            self._ended[run] = run.log.bytes
            self._ended_bytes += run.log.bytes

    def _leave_queue(self, run: Run) -> None:
        queue = self.queues.get(run.thread, [])
        if run not in queue:
            return
        queue.remove(run)
        if queue and queue[0].turn is not None:
            queue[0].turn.set()
        if not queue:
            del self.queues[run.thread]
        if not self.queues and (export := make_exporter()) is not None:
            self.background(export_after_requests(export))

    def end_life(self, run: Run) -> None:
        """Let go of a run that is stored, or cannot be."""
        if not run.log.has_ended:
            run.refuse(start_failed_error())
        self.lives.pop(run)
        self._leave_queue(run)
        run.input, run.is_live = None, False
        self.release_unread(run)
        self._update_health()

    def discard(self, run: Run) -> None:
        """Remove a run that has ended, because its ids are another run's."""
        if run in self._ended:
            self._ended_bytes -= self._ended.pop(run)
            self._remove(run)

    def _remove(self, run: Run) -> None:
        del self.by_key[run.key]
        run.log.discard()

    def release_unread(self, run: Run) -> None:
        """Remove an ended run without local readers if it is in a durable store, where late readers find it.

        Then remove the oldest ended runs without readers until the limits are met.
        """
        if run.life.phase is RunPhase.STORED and not run.readers.local:
            self.discard(run)
        while len(self._ended) > self._limits.kept_runs or self._ended_bytes > self._limits.kept_bytes:
            may_go = (ended for ended in self._ended if not ended.readers.local and ended not in self.lives)
            if (oldest := next(may_go, None)) is None:
                return
            self.discard(oldest)

    def forget_thread(self, thread: ThreadKey) -> None:
        """Remove the ended runs of a deleted thread. Their ids may be used again."""
        for run in list(self.newest_first(*thread)):
            self.discard(run)

    # --- tasks ---

    def background(self, work: Awaitable[object], on_done: Callable[[], None] = lambda: None) -> None:
        """Run work that may outlive its run. The process is busy until it is done, then ``on_done`` is called.

        The work is never refused, because it may store what has happened.
        """

        async def wait() -> None:
            try:
                await work
            except (KeyboardInterrupt, SystemExit):  # asyncio would stop its loop, and with it all runs
                logger.exception("background work failed")

        task = asyncio.create_task(wait(), name="background work")
        self._background.add(task)
        task.add_done_callback(self._end_background)
        task.add_done_callback(lambda _: on_done())
        self.own_task(task)
        self._update_health()

    def _end_background(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        self._update_health()

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("background work failed", exc_info=error)

    def _update_health(self) -> None:
        """Agents that do not stop after the end of their runs do not make the process busy."""
        self._health.update(busy=bool(self.lives or self._background))

    async def stop_recorders(self, seconds: float) -> None:
        """Wait until the ends of all runs are stored, for ``seconds`` at most. Then the others end for readers."""
        await wait_until_done(self.lives.values(), seconds)
        lives = list(self.lives.values())
        for task in lives:
            task.cancel()
        if lives:
            await asyncio.wait(lives)
        for run in list(self.lives):  # its task was cancelled before its first step
            self.end_life(run)

    async def drain(self, grace: float, make_error: Callable[[], AppError]) -> None:
        """Give open runs ``grace`` seconds to finish, then end them with an error, and wait for the agents."""
        for run in self.open_runs():
            if not run.life.has_begun:
                run.refuse(make_error())
        await wait_until_done(self.tasks, grace)
        for run in self.open_runs():
            run.refuse(make_error())
        for run in self.lives:
            run.recorder.is_stopping = True
        for task in self.tasks:
            task.cancel()
        await wait_until_done(self.tasks, UNWIND_SECONDS)
        await wait_until_done(self.lives.values(), UNWIND_SECONDS)


class OpenReaders:
    """The open subscriptions of one process.

    Every subscription is opened here, so that the run knows its readers, a shutdown waits for those that read the end
    of a run, and metrics count all.
    """

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
            raise validation_error("after: is ahead of the last event of the run.")
        if isinstance(run, Run):
            run.readers.enter()
        subscription = run.subscribe(after, self._on_close)
        self._open[subscription] = None
        return subscription

    def _on_close(self, subscription: Subscription) -> None:
        del self._open[subscription]
        if isinstance(run := subscription.run, Run):
            run.readers.leave()
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
        """Wait until no reader of an ended run is open, for ``seconds`` at most."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while any(subscription.run.log.has_ended for subscription in self._open) and loop.time() < deadline:
            await self.wait_for_close(deadline)


async def wait_until_done(tasks: Collection[asyncio.Task[None]], seconds: float) -> None:
    """Wait until there are no tasks, for ``seconds`` at most. Tasks leave the collection when they are done."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while tasks:
                await asyncio.wait(tasks)


async def export_after_requests(export: Awaitable[None]) -> None:
    """Export telemetry once the requests that read the last run have ended."""
    await asyncio.sleep(REQUEST_SECONDS)
    await export
