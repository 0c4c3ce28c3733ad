"""Registry of the runs of one process: open runs by thread, ended runs that can still be read, and their tasks.

Rule: at most one run of a thread is active; the others are queued. Every task is owned here and awaited in ``drain``.
Memory is bounded (``CapacityLimits``). Only ended runs without readers are removed to stay within the limits.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from itertools import islice

from agui_container.engine.admission.eviction import EndedRuns, EvictionPlan, UnreadRuns
from agui_container.engine.admission.quota import Limit, Quota, QuotaLease
from agui_container.engine.health import Health
from agui_container.engine.log.event_log import Flusher
from agui_container.engine.log.subscription import Readable
from agui_container.engine.outcome import CancelReason, Status, sum_usage, usage_json
from agui_container.engine.persistence.recorder import LEASE_TAKEN, RunRecorder, StoreState
from agui_container.engine.policy import CapacityLimits
from agui_container.engine.registry.thread_queues import ThreadQueues
from agui_container.engine.run.fairness import FairScheduler
from agui_container.engine.run.run import Run
from agui_container.ports import Agent
from agui_container.ports.records import RunKey, RunProgress, ThreadKey
from agui_container.protocol.errors import AppError, ErrorCode, shutting_down
from agui_container.runtime.eviction_queue import EvictionQueue
from agui_container.runtime.log_values import format_fields
from agui_container.telemetry import make_exporter

logger = logging.getLogger(__name__)

REQUEST_SECONDS = 0.1
"""Wait before telemetry is exported. The span of a request ends shortly after its run."""

TURN_SECONDS = 0.1
"""Seconds of one turn of a wait. A shutdown counts its seconds in turns: a process that does not get the processor for
a while loses one turn, and not the time in which its runs would have ended."""

UNWIND_SECONDS = 1.0
"""Longest wait of ``drain`` for agents that were cancelled. Agents that still block then end with the process."""


class RunRegistry:
    """The runs of one process. Implements ``leases.LeasedRuns``.

    Args:
        agent: answers every run.
        limits: the limits of runs and memory.
        quota: what the process and each identity have in use.
        health: is set to busy while there are open runs or background work.

    Attributes:
        by_key: all runs, open and ended.
        queues: the open runs of each thread.
        tasks: the tasks of agents and of background work.
        recorder_tasks: the tasks that store runs.
        unread: open runs without a reader, which may be evicted for new runs.
    """

    def __init__(self, agent: Agent, limits: CapacityLimits, quota: Quota, health: Health) -> None:
        self.flusher = Flusher()
        self.unread = UnreadRuns[Run]()
        self._agent = agent
        self._limits = limits
        self._quota = quota
        self._health = health
        self.scheduler = FairScheduler()
        self._leases: dict[Run, tuple[QuotaLease, QuotaLease]] = {}
        """The place of each open run, and the bytes of its request."""
        self.queues = ThreadQueues()
        self.by_key: dict[RunKey, Run] = {}
        self._ended = EndedRuns[Run](limits.kept_runs, limits.kept_bytes)
        self._forgotten = EvictionQueue[RunKey](limits.remembered_ids)
        self._forgotten_of: dict[ThreadKey, dict[RunKey, None]] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self._background: set[asyncio.Task[None]] = set()
        self.recorder_tasks: dict[Run, asyncio.Task[None]] = {}

    # --- look-up ---

    def get(self, key: RunKey) -> Run | None:
        """Return the run with this key, open or ended, or None."""
        return self.by_key.get(key)

    def is_forgotten(self, key: RunKey) -> bool:
        """Return True if this run has ended and its events were removed."""
        return key in self._forgotten

    def is_running(self, key: RunKey) -> bool:
        """Return True if this run is open or its end is not stored yet."""
        run = self.by_key.get(key)
        return run is not None and (run in self.recorder_tasks or not run.log.has_ended)

    def active_run_ids(self, limit: int) -> list[str]:
        """Return the ids of runs that are active, ``limit`` at most."""
        return [run.key.run_id for run in islice(self.queues.active(), limit)]

    @property
    def open_count(self) -> int:
        """Number of runs that have not ended."""
        return len(self.by_key) - len(self._ended)

    @property
    def queued_count(self) -> int:
        """Number of open runs that wait for another run on their thread. Any thread may ask."""
        return max(0, self.open_count - len(self.queues))

    def queue(self, owner: str, thread_id: str) -> tuple[Run, ...]:
        """Return the open runs of a thread: the active one, then the queued ones in order."""
        return self.queues.of(ThreadKey(owner, thread_id))

    def newest_first(self, owner: str, thread_id: str | None = None, run_id: str | None = None) -> Iterator[Run]:
        """Iterate the owner's runs, the newest one first: those of a thread, or those with an id, or all.

        Two threads may have runs with the same id. Nothing may change meanwhile.
        """
        return (
            run
            for key, run in reversed(self.by_key.items())
            if key.owner == owner and thread_id in (None, key.thread_id) and run_id in (None, key.run_id)
        )

    # --- leases ---

    def claimed_runs(self) -> Sequence[RunKey]:
        """Return the keys of the open runs that are claimed in the store."""
        return [run.key for run in self.queues.active() if run.recorder.state is StoreState.CLAIMED]

    def progress(self, now: float) -> Sequence[RunProgress]:
        """Return the number of readers and the usage of the open runs that are claimed in the store."""
        runs = [self.by_key[key] for key in self.claimed_runs()]
        return [RunProgress(it.key, it.presence.count(now), usage_json(sum_usage(it.ctx.usage))) for it in runs]

    def cancel(self, key: RunKey) -> None:
        """Cancel a run. Does nothing if it is not in this process."""
        if (run := self.get(key)) is not None:
            run.cancel(CancelReason.CALLER)

    def end_lost(self, key: RunKey) -> None:
        """End a run whose lease another replica has. Does nothing if the run is not in this process."""
        if (run := self.get(key)) is not None:
            run.fail(LEASE_TAKEN)

    def end_stored(self, key: RunKey) -> None:
        """Record that the store has the end of a run, so that late readers read it there."""
        if (run := self.get(key)) is not None:
            run.recorder.state = StoreState.STORED
            self.release_unread(run)

    # --- lifecycle ---

    def plan_room(self, new: Run, to_cancel: Sequence[Run], now: float) -> Sequence[Run]:
        """Return the runs that must end so that there is room for a new run: ``to_cancel`` and abandoned ones.

        Called before any run is cancelled, so that a refused run ends no other. ``to_cancel`` are open runs of the new
        run's thread. Runs of other identities end only if the process is at a limit, not if the identity is.

        Raises:
            AppError: THREAD_BUSY if the queue is full, RATE_LIMIT_EXCEEDED if a limit leaves no room.
        """
        if len(self.queues.of(new.key.thread)) - len(to_cancel) > self._limits.queued_runs:
            raise AppError(ErrorCode.THREAD_BUSY, "Too many runs are waiting on this thread.")
        new.log.quota.check(Limit.BACKGROUND_TASKS)
        plan: EvictionPlan[Run] = EvictionPlan(new.log.quota, new.recorder.origin.size, self._size)
        for run in to_cancel:
            plan.add(run)
        plan.add_until_room(self.unread, now)
        return list(plan.runs)

    def add(self, run: Run) -> None:
        """Add a run to the queue of its thread, after ``plan_room``. Start it if it is the first."""
        quota = run.log.quota
        self._leases[run] = quota.hold(Limit.RUNS), quota.hold(Limit.REQUEST_BYTES, run.recorder.origin.size)
        self.by_key[run.key] = run
        if self.queues.append(run):
            self._start(run)
        else:
            run.admission.settle()
        self._update_health()

    def _size(self, run: Run) -> int:
        """Return the bytes of the request of an open run."""
        return self._leases[run][1].size

    def run_ended(self, run: Run) -> None:
        """Free the thread of an ended run, start the next one in the queue, and keep the log for late readers."""
        for lease in self._leases.pop(run):
            lease.release()
        self.unread.discard(run)
        run.presence.stop_grace()
        if run.status is Status.QUEUED or run.recorder.state is StoreState.DUPLICATE:
            self._remove_refused(run)
        else:
            self._ended.put(run, run.log.bytes)
            self._start_recorder(run)
        # The recorder has started: an in-memory store has this end before the next run's claim.
        following = self.queues.remove(run)
        if following is not None:
            self._start(following)
        if not self.queues and (export := make_exporter()) is not None:
            self.background(export_after_requests(export))
        self._update_health()

    def _remove_refused(self, run: Run) -> None:
        """Remove a run completely. Its ids may be used again."""
        del self.by_key[run.key]
        run.log.discard()

    def _start(self, run: Run) -> None:
        self._own_task(run.start(self._agent, self.scheduler))
        if run.recorder.cluster.durable:
            self._start_recorder(run)

    def _start_recorder(self, run: Run) -> None:
        """Start the task that stores a run, once: at its beginning if the store is durable, else at its end."""
        if run in self.recorder_tasks:
            return
        recording = self._record(run, run.recorder)
        self.recorder_tasks[run] = asyncio.create_task(recording, name=f"record run {run.ctx.run_id}")

    async def _record(self, run: Run, recorder: RunRecorder) -> None:
        try:
            await recorder.write(run.log, run.lose)
        except Exception:
            logger.exception("run recording failed %s", format_fields({"run": run.ctx.run_id}))
        finally:
            self.recorder_tasks.pop(run, None)
            if run in self._ended and recorder.state is StoreState.DUPLICATE:
                self._ended.remove(run)  # it ended before the store answered that these ids are another run's
                self._remove_refused(run)
            self.release_unread(run)

    def release_unread(self, run: Readable) -> None:
        """Remove an ended run without local readers if it is in a durable store, where late readers find it.

        Then remove the oldest ended runs without readers until the limits are met.
        """
        if not isinstance(run, Run):
            return
        if run.recorder.state is StoreState.STORED and not run.presence.local and run in self._ended:
            self._forget(run)
        for oldest in self._ended.surplus(run.log.quota):
            if oldest not in self.recorder_tasks:
                self._forget(oldest)

    def _forget(self, run: Run) -> None:
        self._ended.remove(run)
        self._remove_refused(run)
        self._forgotten.put(run.key)
        self._forgotten_of.setdefault(run.key.thread, {})[run.key] = None
        if self._forgotten.is_full:
            oldest = next(iter(self._forgotten))
            self._forgotten.remove(oldest)
            of_thread = self._forgotten_of[oldest.thread]
            del of_thread[oldest]
            if not of_thread:
                del self._forgotten_of[oldest.thread]

    def forget_thread(self, thread: ThreadKey) -> None:
        """Remove the ended runs of a deleted thread. Their ids may be used again."""
        for run in [run for run in self.newest_first(*thread) if run in self._ended]:
            self._ended.remove(run)
            self._remove_refused(run)
        for key in self._forgotten_of.pop(thread, ()):
            self._forgotten.remove(key)

    # --- tasks ---

    def background(
        self, work: Awaitable[object], on_done: Callable[[], None] = lambda: None, *, identity: str | None = None
    ) -> None:
        """Run work that may outlive its run. The process is busy until it is done, then ``on_done`` is called.

        The work is never refused, because it may store what has happened. While there is too much of it, new runs are
        refused. ``identity`` is None for work of the server's own.
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
        if identity is not None:
            lease = self._quota.of(identity).hold(Limit.BACKGROUND_TASKS)
            task.add_done_callback(lambda _: lease.release())
        self._own_task(task)
        self._update_health()

    def _end_background(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        self._update_health()

    def _own_task(self, task: asyncio.Task[None]) -> None:
        self.tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("background work failed", exc_info=error)

    def _update_health(self) -> None:
        """Set the process to busy if it has open runs or background work.

        An agent that does not stop after the end of its run does not make the process busy.
        """
        self._health.update(busy=bool(self.queues or self._background))

    async def stop_recorders(self, seconds: float) -> None:
        """Wait until the ends of all runs are stored, for ``seconds`` at most. Then the others end for readers."""
        await wait_in_turns(self.recorder_tasks.values(), seconds)
        recorders = list(self.recorder_tasks.values())
        for task in recorders:
            task.cancel()
        if recorders:
            await asyncio.wait(recorders)

    async def drain(self, grace: float) -> None:
        """Give open runs ``grace`` seconds to finish, then end them with SHUTTING_DOWN, and wait for the agents."""
        for run in self.queues.waiting():
            run.fail(shutting_down())
        await wait_in_turns(self.tasks, grace)
        for run in [*self.queues.waiting(), *self.queues.active()]:
            run.fail(shutting_down())
        for run in self.recorder_tasks:
            run.recorder.drop_backlog(shutting_down())
        for task in self.tasks:
            task.cancel()
        await wait_in_turns(self.tasks, UNWIND_SECONDS)
        await wait_in_turns(self.recorder_tasks.values(), UNWIND_SECONDS)


async def wait_in_turns(tasks: Collection[asyncio.Task[None]], seconds: float) -> None:
    """Wait for ``seconds`` in turns at most until there are no tasks. Tasks leave the collection when they are done."""
    turns = round(seconds / TURN_SECONDS)
    while tasks and turns > 0:
        await asyncio.wait(tasks, timeout=TURN_SECONDS)
        turns -= 1


async def export_after_requests(export: Awaitable[None]) -> None:
    """Export telemetry once the requests that read the last run have ended."""
    await asyncio.sleep(REQUEST_SECONDS)
    await export
