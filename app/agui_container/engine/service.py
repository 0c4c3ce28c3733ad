"""The one door into the engine: start a run, read a run, find a run, drain. Every transport enters here.

Rule: callers see their own runs only, and a retry of the same thread and run ids joins that run instead of running it
again (two of the promises in docs/architecture.md).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ag_ui.core import AgentCapabilities, Interrupt, RunAgentInput

from agui_container.engine.health import Health
from agui_container.engine.log.event_log import EventLog
from agui_container.engine.log.subscription import Subscription
from agui_container.engine.persistence.cluster import Cluster
from agui_container.engine.persistence.leases import Leases
from agui_container.engine.persistence.recorder import RunAlreadyStored, RunRecorder
from agui_container.engine.persistence.remote_run import RemoteRun
from agui_container.engine.policy import OnBusy, Policy, busy_choice
from agui_container.engine.registry.finder import RunFinder
from agui_container.engine.registry.interrupt_answers import is_answer, is_derived_run, with_derived_run_id
from agui_container.engine.registry.local_runs import LocalRuns
from agui_container.engine.registry.registry import RunRegistry, shutting_down
from agui_container.engine.registry.run_services import RunServices
from agui_container.engine.registry.subscriptions import Subscriptions
from agui_container.engine.run.pipeline import EventPipeline
from agui_container.engine.run.run import Run
from agui_container.engine.threads.snapshot_agent import SnapshotAgent, is_connect
from agui_container.engine.threads.threads import ThreadCommands
from agui_container.ports import Agent, Caller, Clock, Responder, RunContext, RunState, ThreadCleanup, Tool
from agui_container.ports.records import RunKey, RunRecord, ThreadKey
from agui_container.ports.store import store_errors_as_app_errors
from agui_container.protocol.errors import AppError, ErrorCode

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
        cluster: Cluster,
        *,
        tools: Mapping[str, Tool],
        capabilities: AgentCapabilities,
        new_id: Callable[[], str],
        responder: Responder | None = None,
        rememberer: ThreadCleanup | None = None,
        closers: Sequence[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        self.capabilities = capabilities
        self.health = Health(clock)
        self.cluster = cluster
        self.new_id = new_id
        self._responder = responder
        self._closers = closers
        self._policy = policy
        self._clock = clock
        self._tools = tools
        self._registry = RunRegistry(agent, policy.limits, self.health)
        self._subscriptions = Subscriptions(self._registry, policy.on_disconnect, clock)
        self.local_runs = LocalRuns(self._registry, self._subscriptions, clock)
        self.runs = RunFinder(self._registry, cluster, clock)
        self.threads = ThreadCommands(cluster, new_id, self.runs, self._pending_interrupts, rememberer)
        self._draining = False
        self._opening = asyncio.Lock()
        self._lease_task: asyncio.Task[None] | None = None

    # --- runs ---

    def start(self, run_input: RunAgentInput, caller: Caller, size: int = 0) -> Subscription:
        """Start a run, or join it where these ids are known here already, and read it from its first event.

        ``size`` is the bytes that have asked for it.

        Raises:
            AppError: THREAD_BUSY, RATE_LIMIT_EXCEEDED, SHUTTING_DOWN; RUN_NOT_FOUND for a retry that comes after the
                run's events were forgotten; VALIDATION_ERROR for a bad ``onBusy`` or ``budget`` in ``forwardedProps``.
        """
        key = RunKey(caller.owner, run_input.thread_id, run_input.run_id)
        known = self._registry.get(key)
        if known is not None:
            return self._subscriptions.open(known, 0)
        if self._registry.is_forgotten(key) and not self.cluster.durable:
            raise AppError(ErrorCode.RUN_NOT_FOUND, "This run has ended and its events are no longer kept.")
        if self._draining:
            raise shutting_down()
        on_busy = busy_choice(run_input.forwarded_props, self._policy.on_busy)
        line, now = self._registry.queue(key.owner, key.thread_id), self._clock.time()
        behind = [run.ctx.run_id for run in line if on_busy is OnBusy.ENQUEUE and not run.presence.is_abandoned(now)]
        recorder = RunRecorder(self.cluster, key, on_busy, behind)
        on_flush = recorder.notify if self.cluster.durable else None
        log = EventLog(key.run_id, self._registry.budget, self._registry.flusher, on_flush)
        run = self._run(run_input, caller, log, recorder)
        leaving = giving_way(line, on_busy, now)
        self._registry.check_room(key.thread, size, leaving)
        for other in reversed(leaving):
            other.cancel()
        self._registry.add(run, size)
        return self._subscriptions.open(run, 0)

    async def admit(self, run_input: RunAgentInput, caller: Caller, size: int = 0) -> Subscription:
        """``start``, and wait until the run has its thread or its place in line; also for a retry of a run elsewhere.

        A caller's connection to the run before may be closing just now, so a busy thread is waited for, for a moment.

        Raises:
            AppError: as ``start``, and STORE_UNAVAILABLE.
        """
        if run_input.resume and await self._answers(run_input, caller):
            run_input = with_derived_run_id(run_input)
        if (ran := await self._find_stored(run_input, caller)) is not None:
            return self._attach_remote(ran, 0)
        if is_connect(run_input) and (shown := await self._snapshot(run_input, caller)):
            return shown
        deadline = asyncio.get_running_loop().time() + LEAVING_SECONDS
        while True:
            try:
                return await self._admitted(run_input, caller, size)
            except RunAlreadyStored as error:
                return self._attach_remote(error.record, 0)
            except AppError as error:
                if error.code is not ErrorCode.THREAD_BUSY or asyncio.get_running_loop().time() >= deadline:
                    raise
            await self._subscriptions.wait_for_close(deadline)

    async def _answers(self, run_input: RunAgentInput, caller: Caller) -> bool:
        """Whether it comes under the ids of a run that has asked this, or whose answer's run has."""
        asking = await self.runs.find_or_none(caller, run_input.thread_id, run_input.run_id)
        if asking is None:
            return False
        if is_answer(run_input, await self.runs.pending_interrupts(asking)):
            return True
        latest = await self.runs.find_or_none(caller, run_input.thread_id)
        if latest is None or not is_derived_run(latest.key.run_id, run_input.run_id):
            return False
        again = latest.key.run_id == with_derived_run_id(run_input).run_id
        return again or is_answer(run_input, await self.runs.pending_interrupts(latest))

    async def _find_stored(self, run_input: RunAgentInput, caller: Caller) -> RunRecord | None:
        """The run of these ids, where the store has one that is not here: a retry must not touch the thread's others.

        It is asked for where it is likely, or something would happen before the claim, which finds it, too.
        """
        if not self.cluster.durable:
            return None
        key = RunKey(caller.owner, run_input.thread_id, run_input.run_id)
        if self._registry.get(key) is not None:
            return None
        stands_behind = self._registry.queue(key.owner, key.thread_id) or is_connect(run_input)
        if not stands_behind and not self._registry.is_forgotten(key):
            return None
        with store_errors_as_app_errors():
            return await self.cluster.store.runs.get(key)

    async def _admitted(self, run_input: RunAgentInput, caller: Caller, size: int) -> Subscription:
        reader = self.start(run_input, caller, size)
        run = reader.run
        try:
            if isinstance(run, Run):
                await run.admission.wait()
        except BaseException:
            reader.close()
            raise
        return reader

    async def _snapshot(self, run_input: RunAgentInput, caller: Caller) -> Subscription | None:
        """The thread, unless it says nothing and the agent may, or this is a run that is known."""
        if self._registry.get(RunKey(caller.owner, run_input.thread_id, run_input.run_id)) is not None:
            return None
        if self._draining:
            raise shutting_down()
        with store_errors_as_app_errors():
            kept = await self.cluster.store.threads.changes(ThreadKey(caller.owner, run_input.thread_id))
        if self._responder is None and (kept is None or not kept.messages):
            return None
        waiting = await self._pending_interrupts(caller, run_input.thread_id)
        log = EventLog(run_input.run_id, self._registry.separate_budget(), self._registry.flusher)
        run = self._run(run_input, caller, log, None)
        self._registry.run_snapshot(run, SnapshotAgent(kept, waiting))
        return self._subscriptions.open(run, 0)

    async def _pending_interrupts(self, caller: Caller, thread_id: str) -> Sequence[Interrupt]:
        """What has been asked on a thread and is not answered, as far as its agent or its last run tells."""
        if self._responder is not None:
            return await self._responder.pending_interrupts(caller, thread_id)
        return await self.runs.pending_interrupts(await self.runs.find_or_none(caller, thread_id))

    def _run(self, run_input: RunAgentInput, caller: Caller, log: EventLog, recorder: RunRecorder | None) -> Run:
        pipeline = EventPipeline(run_input, self.new_id, log)
        reach = RunServices(pipeline, log, self._registry)
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
            state=RunState(reach.value, reach.emit),
            allowance=self._policy.run_limits(run_input.forwarded_props),
        )
        return Run(run_input, ctx, self._clock, log, pipeline, recorder=recorder, on_end=self._registry.run_ended)

    async def attach(self, caller: Caller, thread_id: str | None, run_id: str | None, after: int) -> Subscription:
        """Read a run from ``after`` on. Raises ``AppError`` RUN_NOT_FOUND; VALIDATION_ERROR for a cursor ahead."""
        found = await self.runs.find_any(caller, thread_id, run_id)
        if isinstance(found, Run) and await wait_admitted(found):
            return self._subscriptions.open(found, after)
        record = found if isinstance(found, RunRecord) else await self.runs.find_stored(caller, thread_id, run_id)
        return self._attach_remote(record, after)

    def _attach_remote(self, record: RunRecord, after: int) -> Subscription:
        if not record.kept or not self.cluster.durable:
            raise AppError(ErrorCode.RUN_NOT_FOUND, "This run has ended and its events are no longer kept.")
        return self._subscriptions.open(RemoteRun(self.cluster, record), after)

    # --- the process ---

    async def open(self) -> None:
        """Connect to what is kept; then ``/ping`` may say that initialisation is done. Harmless when it is open.

        Raises:
            StoreUnavailable, BusUnavailable: a start without them is none.
        """
        async with self._opening:
            if not self.health.ready:
                await self._open()

    async def _open(self) -> None:
        await self.cluster.open()
        if self.cluster.durable:
            self._lease_task = asyncio.create_task(Leases(self.cluster, self.local_runs).run(), name="keep leases")
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
            await self._registry.drain(grace)

    async def wait_for_readers(self, seconds: float) -> None:
        """After a drain: let readers that are behind get to the end of their runs, for ``seconds`` at most."""
        await self._subscriptions.wait_all_closed(seconds)

    async def aclose(self) -> None:
        """Close connections to models and tools. Nothing runs any more."""
        if self._lease_task is not None:
            self._lease_task.cancel()
            await asyncio.wait([self._lease_task])
        for close in self._closers:
            await close()
        await self.cluster.aclose()


def giving_way(line: Sequence[Run], on_busy: OnBusy, now: float) -> list[Run]:
    """The open runs of a thread that are cancelled for a new one. Raises ``AppError`` THREAD_BUSY."""
    if on_busy is OnBusy.REJECT and not all(run.presence.is_abandoned(now) for run in line):
        raise AppError(ErrorCode.THREAD_BUSY, "Another run is active on this thread.")
    return [run for run in line if on_busy is OnBusy.INTERRUPT or run.presence.is_abandoned(now)]


async def wait_admitted(run: Run) -> bool:
    """Whether a run goes on here, once that is known: the retry of another replica's run does not."""
    try:
        await run.admission.wait()
    except (RunAlreadyStored, AppError):
        return False
    return True
