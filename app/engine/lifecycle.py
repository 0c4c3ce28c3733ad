"""Who runs and who waits: the open runs of each thread, the ended ones that can still be read, and the tasks of both.

Rule: at most one run of a thread is active; the others wait in line. Every task is owned here and awaited in ``drain``.
What is kept is bounded (``Limits``); only what has ended and has no reader is forgotten.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence

from app.core.errors import AppError, Code
from app.engine.event_log import Flusher
from app.engine.fairness import FairScheduler
from app.engine.health import Health
from app.engine.ledger import Ledger
from app.engine.log_budget import LogBudget
from app.engine.policy import Limits
from app.engine.run import Run
from app.engine.status import Status
from app.engine.subscription import Readable
from app.ports import Agent
from app.ports.records import RunKey, ThreadKey
from app.telemetry import exporting

logger = logging.getLogger(__name__)

UNWIND_SECONDS = 1.0
"""How long ``drain`` waits for agents that were cut off. What is still blocked then is left to the process's end."""


class Lifecycle:
    """The runs of one process.

    Args:
        agent: what every run iterates.
    """

    def __init__(self, agent: Agent, limits: Limits, health: Health) -> None:
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
        self._kept: OrderedDict[RunKey, Run] = OrderedDict()
        self._forgotten: OrderedDict[RunKey, None] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._writing: dict[Run, asyncio.Task[None]] = {}

    def own_budget(self) -> LogBudget:
        """For the log of a run that is only shown: it goes with its readers."""
        return LogBudget(self._limits.run_bytes, self._limits.run_bytes)

    # --- looking ---

    def get(self, key: RunKey) -> Run | None:
        """The run with this key, open or kept."""
        return self._runs.get(key)

    def is_forgotten(self, key: RunKey) -> bool:
        """Whether this run has ended and its events are gone."""
        return key in self._forgotten

    def holds(self, key: RunKey) -> bool:
        """Whether this run goes on, or is being written down."""
        run = self._runs.get(key)
        return run is not None and (run in self._writing or not run.log.has_ended)

    def claimed(self) -> Sequence[Run]:
        """The runs that go on and that the store knows."""
        first = (line[0] for line in self._threads.values())
        return [run for run in first if run.ledger is not None and run.ledger.claimed]

    def line(self, owner: str, thread_id: str) -> tuple[Run, ...]:
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
            raise AppError(Code.THREAD_BUSY, "Too many runs are waiting on this thread.")
        if len(self._runs) - len(self._kept) - len(leaving) >= self._limits.open_runs:
            raise AppError(Code.RATE_LIMIT_EXCEEDED, "This server has as many open runs as it can take.")
        open_bytes = self._open_bytes - sum(self._sizes[run] for run in leaving)
        if open_bytes and open_bytes + size > self._limits.open_bytes:
            raise AppError(Code.RATE_LIMIT_EXCEEDED, "This server has as much to answer as it can take.")

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

    def ended(self, run: Run) -> None:
        """A run is over for its readers: free the thread, start the next in line, keep the log for a while."""
        if run.ledger is None:
            return
        self._open_bytes -= self._sizes.pop(run)
        if run.status is Status.QUEUED or run.ledger.is_others:
            self._withdraw(run)
        else:
            self._kept[run.key] = run
            self._write(run)
        self._leave_line(run)  # behind that: the next one's claim finds this one's end written, where nothing waits
        if not self._threads and (export := exporting()) is not None:
            self.background(export)
        self._report()

    def _leave_line(self, run: Run) -> None:
        thread = run.key.thread
        line = self._threads[thread]
        was_active = line[0] is run
        line.remove(run)
        if not line:
            del self._threads[thread]
        elif was_active:
            self._start(line[0])

    def _withdraw(self, run: Run) -> None:
        """It was not let in: for all who have not seen it, as if it had never been."""
        del self._runs[run.key]
        run.log.discard()

    def _start(self, run: Run) -> None:
        self._own(run.start(self._agent, self.scheduler))
        if run.ledger is not None and run.ledger.archive.durable:
            self._write(run)

    def show(self, run: Run, agent: Agent) -> None:
        """Run what only shows what is kept: beside its thread's line, found by nobody and written down nowhere."""
        self._own(run.start(agent, self.scheduler))

    def _write(self, run: Run) -> None:
        """Have the run's ledger written, once: from its beginning where that matters, else at its end."""
        if run.ledger is None or run in self._writing:
            return
        writing = self._written(run, run.ledger)
        self._writing[run] = asyncio.create_task(writing, name=f"write run {run.ctx.run_id}")

    async def _written(self, run: Run, ledger: Ledger) -> None:
        try:
            await ledger.write(run.log, run.fail)
        except Exception:
            logger.exception("a run could not be written down")
        finally:
            self._writing.pop(run, None)
            if self._kept.get(run.key) is run and ledger.is_others:
                del self._kept[run.key]  # it was ended before the store had said that these ids are another run's
                self._withdraw(run)
            self.unread(run)

    def unread(self, run: Readable) -> None:
        """A run may have no reader any more. What is the store's is read there then, and goes with its thread."""
        is_left = isinstance(run, Run) and run.ledger is not None and run.ledger.left_to_store
        if is_left and not run.presence.here and self._kept.get(run.key) is run:
            self._forget(run)
        self.trim()

    def trim(self) -> None:
        """Forget the oldest ended runs that nobody reads, until the limits hold."""
        while len(self._kept) > self._limits.kept_runs or self.budget.kept_bytes > self._limits.kept_bytes:
            kept = self._kept.values()
            oldest = next((run for run in kept if not run.presence.here and run not in self._writing), None)
            if oldest is None:
                return
            self._forget(oldest)

    def _forget(self, run: Run) -> None:
        del self._kept[run.key], self._runs[run.key]
        run.log.discard()
        self._forgotten[run.key] = None
        if len(self._forgotten) > self._limits.remembered_ids:
            self._forgotten.popitem(last=False)

    def drop(self, thread: ThreadKey) -> None:
        """The thread has been deleted: what has run on it is as if it had never been."""
        for key in [key for key in self._kept if key.thread == thread]:
            self._withdraw(self._kept.pop(key))
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
        self._own(task)
        self._report()

    def _own(self, task: asyncio.Task[None]) -> None:
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
        await self._settle(grace)
        for line in list(self._threads.values()):
            for run in list(line):
                run.fail(shutting_down())
        for run in self._writing:
            if run.ledger is not None:
                run.ledger.cut_backlog(shutting_down())
        for task in self._tasks:
            task.cancel()
        await self._settle(UNWIND_SECONDS)
        if self._writing:
            await asyncio.wait(self._writing.values(), timeout=UNWIND_SECONDS)

    async def _settle(self, seconds: float) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)


def shutting_down() -> AppError:
    """What runs and requests get once a drain has begun."""
    return AppError(Code.SHUTTING_DOWN, "The server is shutting down.")
