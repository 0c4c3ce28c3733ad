"""The one door into the engine: start a run, read a run, command, list, drain. Every transport enters here.

Rule: callers see their own runs only, and a retry of the same thread and run ids joins that run instead of running it
again (design 5, promises 4 and 5).
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ag_ui.core import AgentCapabilities, RunAgentInput

from app.core.errors import AppError, Code
from app.engine.archive import Archive
from app.engine.health import Health
from app.engine.lifecycle import Lifecycle, shutting_down
from app.engine.log import Cursor, RunLog
from app.engine.policy import OnBusy, Policy
from app.engine.run import Run
from app.outlet import Outlet
from app.ports import Agent, Caller, Clock, RunContext, State, Tool

LEAVING_SECONDS = 0.25
"""How long a request waits on a busy thread for a reader that is on its way out. A client that stops a run and asks
again at once uses two connections, and the server may hear of the second first."""


class Reader:
    """One watcher of a run, from its creation until ``close``. The last to leave may end the run (``OnDisconnect``)."""

    def __init__(self, run: Run, after: int, on_close: Callable[[Run], None]) -> None:
        if after > len(run.log):
            raise AppError(Code.VALIDATION_ERROR, "after: the run has not come that far.")
        self.run = run
        self._cursor = run.log.read(after)
        self._on_close: Callable[[Run], None] | None = on_close
        run.readers += 1
        if run.grace is not None:
            run.grace.cancel()
            run.grace = None

    def __aiter__(self) -> Cursor:
        return self._cursor

    def nudge(self) -> None:
        """Have the iteration give an empty batch, if there is nothing else to give."""
        self._cursor.nudge()

    def close(self) -> None:
        """Stop watching; the iteration ends. Harmless when called again."""
        self._cursor.close()
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            self.run.readers -= 1
            on_close(self.run)


class Service:
    """The engine of one process.

    Args:
        agent: answers every run.
        tools: the server's tools by name, for the agent's use.
        capabilities: what this server can do.
        new_id: makes ids; called when one is needed, never before.
        archive: what outlives runs.
        closers: let go of what the agent's parts hold, once all is over.
    """

    def __init__(  # noqa: PLR0913 - the composition root hands over each part by name
        self,
        agent: Agent,
        policy: Policy,
        clock: Clock,
        archive: Archive,
        *,
        tools: Mapping[str, Tool],
        capabilities: AgentCapabilities,
        new_id: Callable[[], str],
        closers: Sequence[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        self.capabilities = capabilities
        self.health = Health(clock)
        self.archive = archive
        self.new_id = new_id
        self._closers = closers
        self._policy = policy
        self._clock = clock
        self._tools = tools
        self._lifecycle = Lifecycle(agent, policy.limits, self.health, run_timeout=policy.run_timeout)
        self._draining = False
        self._readers = 0
        self._all_read = asyncio.Event()
        self._leaver = asyncio.Event()

    # --- runs ---

    def start(self, run_input: RunAgentInput, caller: Caller) -> Reader:
        """Start a run, or join it where these ids are known already, and read it from its first event.

        Raises:
            AppError: THREAD_BUSY, RATE_LIMIT_EXCEEDED, SHUTTING_DOWN; RUN_NOT_FOUND for a retry that comes after the
                run's events were forgotten; VALIDATION_ERROR for an unknown ``forwardedProps.onBusy``.
        """
        key = (caller.owner, run_input.thread_id, run_input.run_id)
        known = self._lifecycle.get(key)
        if known is not None:
            return self._read(known, 0)
        if self._lifecycle.is_forgotten(key):
            raise AppError(Code.RUN_NOT_FOUND, "This run has ended and its events are no longer kept.")
        if self._draining:
            raise shutting_down()
        run = self._new_run(run_input, caller)
        self._make_room(run_input, caller)
        self._lifecycle.add(run)
        return self._read(run, 0)

    async def admit(self, run_input: RunAgentInput, caller: Caller) -> Reader:
        """``start``, for a caller whose connection to the run before may be closing just now. Raises as ``start``."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LEAVING_SECONDS
        while True:
            try:
                return self.start(run_input, caller)
            except AppError as error:
                if error.code is not Code.THREAD_BUSY or loop.time() >= deadline:
                    raise
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._leaver.wait(), deadline - loop.time())

    def _make_room(self, run_input: RunAgentInput, caller: Caller) -> None:
        """What is to happen to the runs that stand before this one on its thread."""
        on_busy = busy_choice(run_input.forwarded_props, self._policy.on_busy)
        line = self._lifecycle.line(caller.owner, run_input.thread_id)
        if on_busy is OnBusy.REJECT and any(run.grace is None for run in line):
            raise AppError(Code.THREAD_BUSY, "Another run is active on this thread.")
        for run in reversed(line):
            if on_busy is OnBusy.INTERRUPT or run.grace is not None:
                run.cancel()

    def _new_run(self, run_input: RunAgentInput, caller: Caller) -> Run:
        outlet = Outlet(lambda item: run.send(item))  # noqa: PLW0108 - there is no run yet
        ctx = RunContext(
            thread_id=run_input.thread_id,
            run_id=run_input.run_id,
            caller=caller,
            tools=self._tools,
            new_id=self.new_id,
            logger=logging.getLogger("agent"),
            background=self._lifecycle.background,
            is_cancelled=lambda: run.log.ended,
            emit=outlet.emit,
            state=State(lambda: outlet.on_loop(run.state), outlet.emit),
        )
        log = RunLog(run_input.run_id, self._lifecycle.budget)
        run = Run(run_input, ctx, self._clock, log, on_end=self._lifecycle.ended)
        return run

    def attach(self, caller: Caller, thread_id: str | None, run_id: str | None, after: int) -> Reader:
        """Read a run from ``after`` on. Raises ``AppError`` RUN_NOT_FOUND; VALIDATION_ERROR for a cursor ahead."""
        return self._read(self.find(caller, thread_id, run_id), after)

    def cancel(self, caller: Caller, thread_id: str | None, run_id: str | None) -> dict[str, object]:
        """End a run as cancelled, and say how the run stands. Raises ``AppError`` RUN_NOT_FOUND."""
        run = self.find(caller, thread_id, run_id)
        run.cancel()
        return summary(run)

    def find(self, caller: Caller, thread_id: str | None, run_id: str | None) -> Run:
        """The caller's run by id, or the active, else the latest run of a thread. Raises ``AppError`` RUN_NOT_FOUND."""
        if run_id is None and thread_id is not None:
            for run in self._lifecycle.line(caller.owner, thread_id):
                return run
        for run in self._lifecycle.runs(caller.owner):
            _, its_thread, its_id = run.key
            if thread_id in (None, its_thread) and (run_id == its_id if run_id is not None else thread_id is not None):
                return run
        raise AppError(Code.RUN_NOT_FOUND, "There is no such run, or it is no longer kept.")

    def list(self, caller: Caller) -> list[dict[str, object]]:
        """The caller's live and recent runs, newest first."""
        return [summary(run) for run in self._lifecycle.runs(caller.owner)]

    # --- readers ---

    def _read(self, run: Run, after: int) -> Reader:
        reader = Reader(run, after, self._left)
        self._readers += 1
        self._all_read.clear()
        return reader

    def _left(self, run: Run) -> None:
        """A reader is gone."""
        self._readers -= 1
        if not self._readers:
            self._all_read.set()
        if not run.readers:
            self._abandon(run)
        self._leaver.set()
        self._leaver.clear()

    def _abandon(self, run: Run) -> None:
        """Nobody reads this run any more."""
        grace = self._policy.on_disconnect.grace
        if run.log.ended:
            self._lifecycle.trim()
        elif grace == 0:
            run.cancel()
        elif grace is not None:
            run.grace = self._clock.call_later(grace, run.cancel)

    # --- the process ---

    async def open(self) -> None:
        """Connect to what is kept; then ``/ping`` may say that initialisation is done."""
        await self.archive.open()
        self.health.start()

    async def drain(self, grace: float) -> None:
        """Refuse new runs and end the open ones within ``grace`` seconds and a moment."""
        self._draining = True
        await self._lifecycle.drain(grace)

    async def read_out(self, seconds: float) -> None:
        """After a drain: let readers that are behind get to the end of their runs, for ``seconds`` at most."""
        if self._readers:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_read.wait(), seconds)

    async def aclose(self) -> None:
        """Close connections to models and tools. Nothing runs any more."""
        for close in self._closers:
            await close()
        await self.archive.aclose()


def busy_choice(forwarded: object, default: OnBusy) -> OnBusy:
    """``forwardedProps.onBusy`` where it is given. Raises ``AppError`` VALIDATION_ERROR."""
    choice = forwarded.get("onBusy") if isinstance(forwarded, Mapping) else None
    if choice is None:
        return default
    if choice not in tuple(OnBusy):
        raise AppError(Code.VALIDATION_ERROR, f"forwardedProps.onBusy: must be one of {', '.join(OnBusy)}.")
    return OnBusy(choice)


def summary(run: Run) -> dict[str, object]:
    """A run as the API shows it: camelCase; times in Unix seconds."""
    facts: dict[str, object] = {
        "runId": run.ctx.run_id,
        "threadId": run.ctx.thread_id,
        "status": run.status,
        "startedAt": run.started_at,
        "events": len(run.log),
        "readers": run.readers,
    }
    if run.ended_at is not None:
        facts["endedAt"] = run.ended_at
    return facts
