"""The one door into the engine: start a run, read a run, find a run, drain. Every transport enters here.

Rule: callers see their own runs only, and a retry of the same thread and run ids joins that run instead of running it
again (two of the promises in docs/architecture.md).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ag_ui.core import AgentCapabilities, Interrupt, RunAgentInput

from app.core.errors import AppError, Code
from app.engine.answering import follows, is_answer, under_an_id_of_its_own
from app.engine.archive import Archive
from app.engine.connect import Kept, is_connect
from app.engine.directory import Directory
from app.engine.elsewhere import RunElsewhere
from app.engine.event_log import EventLog
from app.engine.health import Health
from app.engine.holdings import Holdings
from app.engine.leases import Leases
from app.engine.ledger import AlreadyRun, Ledger
from app.engine.lifecycle import Lifecycle, shutting_down
from app.engine.pipeline import EventPipeline
from app.engine.policy import OnBusy, Policy, busy_choice
from app.engine.reach import Reach
from app.engine.run import Run
from app.engine.subscription import Subscription
from app.engine.subscriptions import Subscriptions
from app.engine.threads import Threads
from app.ports import Agent, Caller, Clock, Rememberer, Responder, RunContext, State, Tool
from app.ports.records import RunKey, RunRecord, ThreadKey
from app.ports.store import available

agent_logger = logging.getLogger("agent")

LEAVING_SECONDS = 0.25
"""How long a request waits on a busy thread for a reader that is on its way out. A client that stops a run and asks
again at once uses two connections, and the server may hear of the second first."""


class Service:
    """The engine of one process.

    Args:
        agent: answers every run.
        tools: the server's tools by name, for the agent's use.
        capabilities: what this server can do.
        new_id: makes ids; called when one is needed, never before.
        archive: what outlives runs.
        responder: the agent, if it is one; any other may speak first.
        rememberer: the agent, if it keeps something of threads by itself.
        closers: let go of what the agent's parts hold, once all is over.

    Attributes:
        runs: finds, lists and cancels.
        threads: what callers read of their threads and do with them.
        holdings: what other replicas see of this one.
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
        responder: Responder | None = None,
        rememberer: Rememberer | None = None,
        closers: Sequence[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        self.capabilities = capabilities
        self.health = Health(clock)
        self.archive = archive
        self.new_id = new_id
        self._responder = responder
        self._closers = closers
        self._policy = policy
        self._clock = clock
        self._tools = tools
        self._lifecycle = Lifecycle(agent, policy.limits, self.health)
        self._subscriptions = Subscriptions(self._lifecycle, policy.on_disconnect, clock)
        self.holdings = Holdings(self._lifecycle, self._subscriptions, clock)
        self.runs = Directory(self._lifecycle, archive, clock)
        self.threads = Threads(archive, new_id, self.runs, self._waiting, rememberer)
        self._draining = False
        self._keeping: asyncio.Task[None] | None = None

    # --- runs ---

    def start(self, run_input: RunAgentInput, caller: Caller, size: int = 0) -> Subscription:
        """Start a run, or join it where these ids are known here already, and read it from its first event.

        ``size`` is the bytes that have asked for it.

        Raises:
            AppError: THREAD_BUSY, RATE_LIMIT_EXCEEDED, SHUTTING_DOWN; RUN_NOT_FOUND for a retry that comes after the
                run's events were forgotten; VALIDATION_ERROR for a bad ``onBusy`` or ``budget`` in ``forwardedProps``.
        """
        key = RunKey(caller.owner, run_input.thread_id, run_input.run_id)
        known = self._lifecycle.get(key)
        if known is not None:
            return self._subscriptions.open(known, 0)
        if self._lifecycle.is_forgotten(key) and not self.archive.durable:
            raise AppError(Code.RUN_NOT_FOUND, "This run has ended and its events are no longer kept.")
        if self._draining:
            raise shutting_down()
        on_busy = busy_choice(run_input.forwarded_props, self._policy.on_busy)
        line, now = self._lifecycle.line(key.owner, key.thread_id), self._clock.time()
        behind = [run.ctx.run_id for run in line if on_busy is OnBusy.ENQUEUE and not run.presence.is_gone(now)]
        ledger = Ledger(self.archive, key, on_busy, behind)
        on_flush = ledger.noted if self.archive.durable else None
        log = EventLog(key.run_id, self._lifecycle.budget, self._lifecycle.flusher, on_flush)
        run = self._run(run_input, caller, log, ledger)
        leaving = giving_way(line, on_busy, now)
        self._lifecycle.check_room(key.thread, size, leaving)
        for other in reversed(leaving):
            other.cancel()
        self._lifecycle.add(run, size)
        return self._subscriptions.open(run, 0)

    async def admit(self, run_input: RunAgentInput, caller: Caller, size: int = 0) -> Subscription:
        """``start``, and wait until the run has its thread or its place in line; also for a retry of a run elsewhere.

        A caller's connection to the run before may be closing just now, so a busy thread is waited for, for a moment.

        Raises:
            AppError: as ``start``, and STORE_UNAVAILABLE.
        """
        if run_input.resume and await self._answers(run_input, caller):
            run_input = under_an_id_of_its_own(run_input)
        if (ran := await self._known_to_store(run_input, caller)) is not None:
            return self._elsewhere(ran, 0)
        if is_connect(run_input) and (shown := await self._shown(run_input, caller)):
            return shown
        deadline = asyncio.get_running_loop().time() + LEAVING_SECONDS
        while True:
            try:
                return await self._admitted(run_input, caller, size)
            except AlreadyRun as error:
                return self._elsewhere(error.record, 0)
            except AppError as error:
                if error.code is not Code.THREAD_BUSY or asyncio.get_running_loop().time() >= deadline:
                    raise
            await self._subscriptions.one_gone(deadline)

    async def _answers(self, run_input: RunAgentInput, caller: Caller) -> bool:
        """Whether it comes under the ids of a run that has asked this, or whose answer's run has."""
        asking = await self.runs.known(caller, run_input.thread_id, run_input.run_id)
        if asking is None:
            return False
        if is_answer(run_input, await self.runs.asked(asking)):
            return True
        latest = await self.runs.known(caller, run_input.thread_id)
        if latest is None or not follows(latest.key.run_id, run_input.run_id):
            return False
        again = latest.key.run_id == under_an_id_of_its_own(run_input).run_id
        return again or is_answer(run_input, await self.runs.asked(latest))

    async def _known_to_store(self, run_input: RunAgentInput, caller: Caller) -> RunRecord | None:
        """The run of these ids, where the store has one that is not here: a retry must not touch the thread's others.

        It is asked for where it is likely, or something would happen before the claim, which finds it, too.
        """
        if not self.archive.durable:
            return None
        key = RunKey(caller.owner, run_input.thread_id, run_input.run_id)
        if self._lifecycle.get(key) is not None:
            return None
        stands_behind = self._lifecycle.line(key.owner, key.thread_id) or is_connect(run_input)
        if not stands_behind and not self._lifecycle.is_forgotten(key):
            return None
        with available():
            return await self.archive.store.runs.get(key)

    async def _admitted(self, run_input: RunAgentInput, caller: Caller, size: int) -> Subscription:
        reader = self.start(run_input, caller, size)
        run = reader.run
        try:
            if isinstance(run, Run):
                await run.admission.granted()
        except BaseException:
            reader.close()
            raise
        return reader

    async def _shown(self, run_input: RunAgentInput, caller: Caller) -> Subscription | None:
        """The thread, unless it says nothing and the agent may, or this is a run that is known."""
        if self._lifecycle.get(RunKey(caller.owner, run_input.thread_id, run_input.run_id)) is not None:
            return None
        if self._draining:
            raise shutting_down()
        with available():
            kept = await self.archive.store.threads.changes(ThreadKey(caller.owner, run_input.thread_id))
        if self._responder is None and (kept is None or not kept.messages):
            return None
        waiting = await self._waiting(caller, run_input.thread_id)
        log = EventLog(run_input.run_id, self._lifecycle.own_budget(), self._lifecycle.flusher)
        run = self._run(run_input, caller, log, None)
        self._lifecycle.show(run, Kept(kept, waiting))
        return self._subscriptions.open(run, 0)

    async def _waiting(self, caller: Caller, thread_id: str) -> Sequence[Interrupt]:
        """What has been asked on a thread and is not answered, as far as its agent or its last run tells."""
        if self._responder is not None:
            return await self._responder.waiting(caller, thread_id)
        return await self.runs.asked(await self.runs.known(caller, thread_id))

    def _run(self, run_input: RunAgentInput, caller: Caller, log: EventLog, ledger: Ledger | None) -> Run:
        pipeline = EventPipeline(run_input, self.new_id, log)
        reach = Reach(pipeline, log, self._lifecycle)
        ctx = RunContext(
            thread_id=run_input.thread_id,
            run_id=run_input.run_id,
            caller=caller,
            tools=self._tools,
            new_id=self.new_id,
            logger=agent_logger,
            background=reach.background,
            is_cancelled=reach.is_over,
            emit=reach.emit,
            yield_turn=reach.yield_turn,
            state=State(reach.value, reach.emit),
            allowance=self._policy.allowance(run_input.forwarded_props),
        )
        return Run(run_input, ctx, self._clock, log, pipeline, ledger=ledger, on_end=self._lifecycle.ended)

    async def attach(self, caller: Caller, thread_id: str | None, run_id: str | None, after: int) -> Subscription:
        """Read a run from ``after`` on. Raises ``AppError`` RUN_NOT_FOUND; VALIDATION_ERROR for a cursor ahead."""
        found = await self.runs.found(caller, thread_id, run_id)
        if isinstance(found, Run) and await is_let_in(found):
            return self._subscriptions.open(found, after)
        record = found if isinstance(found, RunRecord) else await self.runs.stored(caller, thread_id, run_id)
        return self._elsewhere(record, after)

    def _elsewhere(self, record: RunRecord, after: int) -> Subscription:
        if not record.kept or not self.archive.durable:
            raise AppError(Code.RUN_NOT_FOUND, "This run has ended and its events are no longer kept.")
        return self._subscriptions.open(RunElsewhere(self.archive, record), after)

    # --- the process ---

    async def open(self) -> None:
        """Connect to what is kept; then ``/ping`` may say that initialisation is done. Harmless when it is open.

        Raises:
            StoreUnavailable, BusUnavailable: a start without them is none.
        """
        if self.health.ready:
            return
        await self.archive.open()
        if self.archive.durable:
            self._keeping = asyncio.create_task(Leases(self.archive, self.holdings).keep(), name="keep leases")
        self.health.start()

    @property
    def is_draining(self) -> bool:
        """True from the beginning of ``drain`` on."""
        return self._draining

    def is_serving(self) -> bool:
        """Whether runs are taken: after initialisation, and until the drain begins."""
        return self.health.ready and not self._draining

    async def drain(self, grace: float) -> None:
        """Refuse new runs and end the open ones within ``grace`` seconds and a moment. Once is enough."""
        if not self._draining:
            self._draining = True
            await self._lifecycle.drain(grace)

    async def read_out(self, seconds: float) -> None:
        """After a drain: let readers that are behind get to the end of their runs, for ``seconds`` at most."""
        await self._subscriptions.all_gone(seconds)

    async def aclose(self) -> None:
        """Close connections to models and tools. Nothing runs any more."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        for close in self._closers:
            await close()
        await self.archive.aclose()


def giving_way(line: Sequence[Run], on_busy: OnBusy, now: float) -> list[Run]:
    """The open runs of a thread that are cancelled for a new one. Raises ``AppError`` THREAD_BUSY."""
    if on_busy is OnBusy.REJECT and not all(run.presence.is_gone(now) for run in line):
        raise AppError(Code.THREAD_BUSY, "Another run is active on this thread.")
    return [run for run in line if on_busy is OnBusy.INTERRUPT or run.presence.is_gone(now)]


async def is_let_in(run: Run) -> bool:
    """Whether a run goes on here, once that is known: the retry of another replica's run does not."""
    try:
        await run.admission.granted()
    except (AlreadyRun, AppError):
        return False
    return True
