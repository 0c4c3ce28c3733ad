"""Who runs and who waits: the open runs of each thread, the ended ones that can still be read, and the tasks of both.

Rule: at most one run of a thread is active; the others wait in line. Every task is owned here and awaited in ``drain``.
What is kept is bounded (``CapacityLimits``); only what has ended and has no reader is forgotten.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence

from agui_container.engine.health import Health
from agui_container.engine.log.event_log import Flusher
from agui_container.engine.log.log_budget import LogBudget
from agui_container.engine.log.subscription import Readable
from agui_container.engine.outcome import Status
from agui_container.engine.persistence.recorder import RunRecorder
from agui_container.engine.policy import CapacityLimits
from agui_container.engine.run.fairness import FairScheduler
from agui_container.engine.run.run import Run
from agui_container.ports import Agent
from agui_container.ports.records import RunKey, ThreadKey
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.telemetry import make_exporter

logger = logging.getLogger(__name__)

UNWIND_SECONDS = 1.0
"""How long ``drain`` waits for agents that were cut off. What is still blocked then is left to the process's end."""


class RunRegistry:
    """The runs of one process.

    Args:
        agent: what every run iterates.
    """

    def __init__(self, agent: Agent, limits: CapacityLimits, health: Health) -> None:
        self.flusher = Flusher()
        self.budget = LogBudget(limits.run_bytes, limits.all_bytes)
        self._agent = agent
        self._limits = limits
        self._health = health
        self.scheduler = FairScheduler()
        self._sizes: dict[Run, int] = {}
        self._open_bytes = 0
        self._threads: dict[ThreadKey, list[Run]] = {}
        self._runs: dict[RunKey, Run] = {}
        self._ended_runs: OrderedDict[RunKey, Run] = OrderedDict()
        self._forgotten: OrderedDict[RunKey, None] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._writing: dict[Run, asyncio.Task[None]] = {}

    def separate_budget(self) -> LogBudget:
        """For the log of a run that is only shown: it goes with its readers."""
        return LogBudget(self._limits.run_bytes, self._limits.run_bytes)

    # --- looking ---

    def get(self, key: RunKey) -> Run | None:
        """The run with this key, open or kept."""
        return self._runs.get(key)

    def is_forgotten(self, key: RunKey) -> bool:
        """Whether this run has ended and its events are gone."""
        return key in self._forgotten

    def is_running(self, key: RunKey) -> bool:
        """Whether this run goes on, or is being written down."""
        run = self._runs.get(key)
        return run is not None and (run in self._writing or not run.log.has_ended)

    def claimed_runs(self) -> Sequence[Run]:
        """The runs that go on and that the store knows."""
        first = (line[0] for line in self._threads.values())
        return [run for run in first if run.recorder is not None and run.recorder.is_claimed]

    def queue(self, owner: str, thread_id: str) -> tuple[Run, ...]:
        """The thread's open runs: the active one first, then those that wait."""
        return tuple(self._threads.get(ThreadKey(owner, thread_id), ()))

    def runs(self, owner: str) -> Iterator[Run]:
        """The owner's runs, newest first."""
        return (run for key, run in reversed(self._runs.items()) if key.owner == owner)

    # --- a run's way through ---

    def check_room(self, thread: ThreadKey, size: int, leaving: Sequence[Run]) -> None:
        """Check that one more run fits once ``leaving``, open runs of its thread, have ended.

        Nothing has been cancelled yet, so a refusal costs nobody a run. ``size`` is the bytes that ask for the new one.

        Raises:
            AppError: THREAD_BUSY when the line is full, RATE_LIMIT_EXCEEDED when the process is.
        """
        if len(self._threads.get(thread, ())) - len(leaving) > self._limits.queued_runs:
            raise AppError(ErrorCode.THREAD_BUSY, "Too many runs are waiting on this thread.")
        if len(self._runs) - len(self._ended_runs) - len(leaving) >= self._limits.open_runs:
            raise AppError(ErrorCode.RATE_LIMIT_EXCEEDED, "This server has as many open runs as it can take.")
        open_bytes = self._open_bytes - sum(self._sizes[run] for run in leaving)
        if open_bytes and open_bytes + size > self._limits.open_bytes:
            raise AppError(ErrorCode.RATE_LIMIT_EXCEEDED, "This server has as much to answer as it can take.")

    def add(self, run: Run, size: int) -> None:
        """Put a run for which there is room into its thread's line; it starts when it is first.

        ``size`` is the bytes that have asked for it.
        """
        thread = run.key.thread
        line = self._threads.get(thread) or []
        self._sizes[run] = size
        self._open_bytes += size
        self._threads[thread] = line
        self._runs[run.key] = run
        line.append(run)
        if line[0] is run:
            self._start(run)
        else:
            run.admission.settle()
        self._report()

    def run_ended(self, run: Run) -> None:
        """A run is over for its readers: free the thread, start the next in line, keep the log for a while."""
        if run.recorder is None:
            return
        self._open_bytes -= self._sizes.pop(run)
        if run.status is Status.QUEUED or run.recorder.is_duplicate:
            self._remove_refused(run)
        else:
            self._ended_runs[run.key] = run
            self._write(run)
        self._dequeue(run)  # behind that: the next one's claim finds this one's end written, where nothing waits
        if not self._threads and (export := make_exporter()) is not None:
            self.background(export)
        self._report()

    def _dequeue(self, run: Run) -> None:
        thread = run.key.thread
        line = self._threads[thread]
        was_active = line[0] is run
        line.remove(run)
        if not line:
            del self._threads[thread]
        elif was_active:
            self._start(line[0])

    def _remove_refused(self, run: Run) -> None:
        """It was not let in: for all who have not seen it, as if it had never been."""
        del self._runs[run.key]
        run.log.discard()

    def _start(self, run: Run) -> None:
        self._own_task(run.start(self._agent, self.scheduler))
        if run.recorder is not None and run.recorder.cluster.durable:
            self._write(run)

    def run_snapshot(self, run: Run, agent: Agent) -> None:
        """Run what only shows what is kept: beside its thread's line, found by nobody and written down nowhere."""
        self._own_task(run.start(agent, self.scheduler))

    def _write(self, run: Run) -> None:
        """Have the run's ledger written, once: from its beginning where that matters, else at its end."""
        if run.recorder is None or run in self._writing:
            return
        writing = self._recorded(run, run.recorder)
        self._writing[run] = asyncio.create_task(writing, name=f"write run {run.ctx.run_id}")

    async def _recorded(self, run: Run, recorder: RunRecorder) -> None:
        try:
            await recorder.write(run.log, run.fail)
        except Exception:
            logger.exception("a run could not be written down")
        finally:
            self._writing.pop(run, None)
            if self._ended_runs.get(run.key) is run and recorder.is_duplicate:
                del self._ended_runs[run.key]  # it was ended before the store had said that these ids are another run's
                self._remove_refused(run)
            self.run_unread(run)

    def run_unread(self, run: Readable) -> None:
        """A run may have no reader any more. What is the store's is read there then, and goes with its thread."""
        is_left = isinstance(run, Run) and run.recorder is not None and run.recorder.persisted
        if is_left and not run.presence.local and self._ended_runs.get(run.key) is run:
            self._forget(run)
        self.trim()

    def trim(self) -> None:
        """Forget the oldest ended runs that nobody reads, until the limits hold."""
        while len(self._ended_runs) > self._limits.kept_runs or self.budget.kept_bytes > self._limits.kept_bytes:
            kept = self._ended_runs.values()
            oldest = next((run for run in kept if not run.presence.local and run not in self._writing), None)
            if oldest is None:
                return
            self._forget(oldest)

    def _forget(self, run: Run) -> None:
        del self._ended_runs[run.key], self._runs[run.key]
        run.log.discard()
        self._forgotten[run.key] = None
        if len(self._forgotten) > self._limits.remembered_ids:
            self._forgotten.popitem(last=False)

    def forget_thread(self, thread: ThreadKey) -> None:
        """The thread has been deleted: what has run on it is as if it had never been."""
        for key in [key for key in self._ended_runs if key.thread == thread]:
            self._remove_refused(self._ended_runs.pop(key))
        for key in [key for key in self._forgotten if key.thread == thread]:
            del self._forgotten[key]

    # --- tasks ---

    def background(self, work: Awaitable[object], on_done: Callable[[], None] = lambda: None) -> None:
        """Own work that outlives its run; the process stays busy until it is done, then ``on_done`` is called."""

        async def wait() -> None:
            await work

        task = asyncio.create_task(wait(), name="background work")
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        task.add_done_callback(lambda _: on_done())
        self._own_task(task)
        self._report()

    def _own_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("background work failed", exc_info=error)
        self._report()

    def _report(self) -> None:
        """Busy is who has work: open runs and their background. An agent that hangs after its end has none."""
        self._health.update(busy=bool(self._threads or self._background))

    async def drain(self, grace: float) -> None:
        """Give open runs ``grace`` seconds to finish, then end them with SHUTTING_DOWN, and wait for the agents."""
        for line in list(self._threads.values()):
            for waiting in list(line)[1:]:
                waiting.fail(shutting_down())
        await self._wait_for_tasks(grace)
        for line in list(self._threads.values()):
            for run in list(line):
                run.fail(shutting_down())
        for run in self._writing:
            if run.recorder is not None:
                run.recorder.cut_backlog(shutting_down())
        for task in self._tasks:
            task.cancel()
        await self._wait_for_tasks(UNWIND_SECONDS)
        if self._writing:
            await asyncio.wait(self._writing.values(), timeout=UNWIND_SECONDS)

    async def _wait_for_tasks(self, seconds: float) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)


def shutting_down() -> AppError:
    """What runs and requests get once a drain has begun."""
    return AppError(ErrorCode.SHUTTING_DOWN, "The server is shutting down.")
