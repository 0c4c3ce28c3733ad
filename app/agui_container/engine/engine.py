"""The engine of one process: it starts, finds and reads runs, and ends them at shutdown.

Rule: every transport enters the engine here, through the interface ``Service``. Callers see their own runs only, and a
retry of the same thread and run ids joins that run instead of running it again (two of the promises in
docs/architecture.md).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ag_ui.core import AgentCapabilities, RunAgentInput

from agui_container.engine.admission.quota import Limit, Quota
from agui_container.engine.counts import EngineCounts
from agui_container.engine.health import Health
from agui_container.engine.log.event_log import EventLog, LogMemory
from agui_container.engine.log.subscription import Subscription
from agui_container.engine.loop_monitor import LoopMonitor
from agui_container.engine.outcome import CancelReason
from agui_container.engine.persistence.cluster import Cluster
from agui_container.engine.persistence.leases import Leases
from agui_container.engine.persistence.recorder import (
    NO_ORIGIN,
    RunAlreadyStored,
    RunOrigin,
    RunRecorder,
    has_messages_error,
)
from agui_container.engine.persistence.remote_run import RemoteRun
from agui_container.engine.policy import NO_CONDITION, OnBusy, Policy, ThreadCondition
from agui_container.engine.registry.finder import RunFinder
from agui_container.engine.registry.readers import Readers, wait_with
from agui_container.engine.registry.registry import RunRegistry
from agui_container.engine.registry.repeated_inputs import check_same_messages, fingerprint_of
from agui_container.engine.registry.run_services import RunServices
from agui_container.engine.registry.thread_queues import runs_before, thread_busy, wait_admitted
from agui_container.engine.run.pipeline import EventPipeline
from agui_container.engine.run.run import Run
from agui_container.engine.threads.thread_snapshot import ThreadSnapshot, is_connect, snapshot_events
from agui_container.engine.threads.threads import ThreadCommands
from agui_container.ports import Agent, Caller, Clock, Responder, RunContext, RunState, ThreadCleanup, Tool
from agui_container.ports.records import RunKey, RunRecord, ThreadKey
from agui_container.ports.store import store_errors_as_app_errors
from agui_container.protocol.errors import AppError, ErrorCode, shutting_down
from agui_container.runtime.offload import offload_if_large
from agui_container.telemetry import observe_engine

agent_logger = logging.getLogger("agent")

CLOSING_READER_SECONDS = 0.25
"""Longest wait of a request on a busy thread for a connection that is being closed. A client that stops a run and sends
the next one immediately uses two connections, and the server may notice the second one first."""


class Engine:
    """The engine of one process. Implements ``Service``.

    Args:
        agent: answers every run.
        policy: the operator's choices and limits.
        clock: the time and timers.
        cluster: the store and the bus.
        tools: the server's tools by name, for the agent's use.
        capabilities: the capabilities that this server announces.
        new_id: returns a new unique id. Nothing calls it before an id is needed.
        responder: the agent, if it only answers messages. Any other agent may produce the first message of a thread.
        thread_cleanup: the agent, if it stores data of threads by itself.
        closers: close the connections of the agent's parts, when all runs have ended.
        name_of: returns the name of the agent that answers an input, for the log. Raises ``AppError`` if the input
            names an agent that is not served.
        has_other_work: True while the agent has open work that the engine does not know of.

    Attributes:
        runs: finds, lists and cancels runs.
        threads: the callers' operations on threads.
        clock: source of time.
        quota: what the process and each identity have in use.
        registry: the runs of this process.
        readers: the readers of this process.
        leases: renews the leases of this process's runs, and executes the commands of other replicas.
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
        thread_cleanup: ThreadCleanup | None = None,
        closers: Sequence[Callable[[], Awaitable[None]]] = (),
        name_of: Callable[[RunAgentInput], str] = lambda _: "agent",
        has_other_work: Callable[[], bool] = lambda: False,
    ) -> None:
        self.capabilities = capabilities
        self.health = Health(clock, has_other_work)
        self.cluster = cluster
        self.new_id = new_id
        self._responder = responder
        self._closers = closers
        self._name_of = name_of
        self._policy = policy
        self.clock = clock
        self._tools = tools
        self.quota = Quota(policy.limits, policy.identity_limits, clock)
        self.registry = RunRegistry(agent, policy.limits, self.quota, self.health)
        self.readers = Readers(self.registry, self.quota, policy.on_disconnect, clock)
        self._counts = EngineCounts(self.registry, self.readers, self.quota)
        self.leases = Leases(cluster, self.registry, self.readers.remote_reader_seen)
        self.runs = RunFinder(self.registry, cluster, clock, responder)
        self.threads = ThreadCommands(cluster, self.quota, new_id, self.runs, thread_cleanup)
        self._draining = False
        self._drain_callbacks: list[Callable[[], None]] = []
        self._opening = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    # --- runs ---

    def busy_choice(self, run_input: RunAgentInput) -> OnBusy:
        """Return the treatment of this run if another one is open. Raises ``AppError`` VALIDATION_ERROR."""
        return self._policy.busy_choice(run_input.forwarded_props)

    def start(self, run_input: RunAgentInput, caller: Caller, origin: RunOrigin = NO_ORIGIN) -> Subscription:
        """Start a run and read it from its first event. If these ids are known in this process, join that run instead.

        Args:
            run_input: the input of the run.
            caller: the client.
            origin: what else is known of the request. The condition is checked here for runs of this process only, and
                again when the run claims the thread.

        Raises:
            AppError: THREAD_BUSY, RATE_LIMIT_EXCEEDED, SHUTTING_DOWN; RUN_NOT_FOUND for a retry after the
                run's events were removed; VALIDATION_ERROR for a bad ``onBusy``, ``budget`` or ``agent`` in
                ``forwardedProps``, or for other messages than those of the run with these ids.
        """
        key = RunKey(caller.owner, run_input.thread_id, run_input.run_id)
        existing = self.registry.get(key)
        if existing is not None:
            check_same_messages(origin.fingerprint, existing.recorder.origin.fingerprint)
            return self.readers.open(existing, 0, caller)
        self._check_startable(key, origin.condition)
        chosen = self.busy_choice(run_input)
        on_busy = OnBusy.REJECT if origin.condition.latest_run else chosen
        queue, now = self.registry.queue(key.owner, key.thread_id), self.clock.time()
        to_cancel, before = runs_before(queue, on_busy, now)  # first: ``admit`` may try a busy thread many times
        run = self._run(run_input, caller, RunRecorder(self.cluster, key, on_busy, before, origin, caller.identity))
        self._add(run, to_cancel)
        return self.readers.open(run, 0, caller)

    def _add(self, run: Run, to_cancel: Sequence[Run]) -> None:
        """Add a run to the registry, and cancel the runs that it replaces or that give way to it."""
        run.log.quota.check(Limit.STREAMS)
        plan = self.registry.plan_room(run, to_cancel, run.started_at)
        run.log.quota.count(Limit.RUNS_PER_MINUTE)
        for other in reversed(plan):
            other.cancel(CancelReason.NEW_RUN)
        self.registry.add(run)

    def _check_startable(self, key: RunKey, condition: ThreadCondition) -> None:
        if self.registry.is_forgotten(key) and not self.cluster.durable:
            raise AppError(ErrorCode.RUN_NOT_FOUND, "This run has ended and its events are no longer kept.")
        if self._draining:
            raise shutting_down()
        if condition.latest_run and self.registry.queue(key.owner, key.thread_id):
            raise thread_busy()

    async def admit(
        self, run_input: RunAgentInput, caller: Caller, size: int = 0, condition: ThreadCondition = NO_CONDITION
    ) -> Subscription:
        """Answer a run input, after one look-up, in one of five ways. Wait until a run is active or queued.

        | case | if | the client reads |
        |---|---|---|
        | continue | ``resume`` answers the known run with these ids | a run under a derived id: any of the others |
        | attach | the store has a run with these ids | that run |
        | show | there is none, the input has no new messages, and the thread has some | the thread, as a run |
        | join | this process has one | that run |
        | start | otherwise, if the condition holds | a new run |

        ``size`` are the bytes of the request, ``condition`` is one on the thread. Raises ``AppError`` as ``start``, and
        STORE_UNAVAILABLE.
        """
        may_show, fingerprint = is_connect(run_input), None
        known = await self._look_up(run_input, caller, reads_store=may_show or bool(run_input.resume))
        if (continuation := await self.runs.find_continuation(known, run_input, caller)) is not None:
            run_input, questions = continuation
            known = await self._look_up(run_input, caller)
        else:
            questions = await self.threads.waiting(caller, run_input.thread_id) if run_input.resume else ()
            fingerprint = await offload_if_large(caller.identity, size, fingerprint_of, run_input.messages)
        if isinstance(known, RunRecord):
            return self._attach_stored(known, 0, caller, fingerprint)
        if known is None and may_show and (shown := await self._show(run_input, caller)):
            return shown
        origin = RunOrigin(size, condition if known is None else NO_CONDITION, fingerprint, questions)
        try:
            return await self._join_or_start(run_input, caller, origin)
        except RunAlreadyStored as error:
            return self._attach_stored(error.record, 0, caller, fingerprint)

    async def _look_up(
        self, run_input: RunAgentInput, caller: Caller, *, reads_store: bool = False
    ) -> Run | RunRecord | None:
        """Return the run with these ids, of this process or of the store, or None if it is unknown.

        The claim finds a stored run as well. The store is read before it only if the run probably exists, if
        ``reads_store`` is true, or if the new run would cancel others or wait for others. A retry must do neither.
        """
        key = RunKey(caller.owner, run_input.thread_id, run_input.run_id)
        run = self.registry.get(key)
        if run is not None and not (reads_store and self.runs.awaits_claim(run)):
            return run
        may_be_stored = self.cluster.durable and (reads_store or key.thread in self.registry.queues)
        if not (may_be_stored or self.registry.is_forgotten(key)):
            return run
        with store_errors_as_app_errors():
            return await self.cluster.store.runs.get(key) or run

    async def _join_or_start(self, run_input: RunAgentInput, caller: Caller, origin: RunOrigin) -> Subscription:
        """Join or start a run. Try a busy thread again for ``CLOSING_READER_SECONDS``, while readers leave."""
        deadline = asyncio.get_running_loop().time() + CLOSING_READER_SECONDS
        while True:
            try:
                await self._check_condition(origin.condition, caller, run_input.thread_id)
                return await wait_with(self.start(run_input, caller, origin))
            except AppError as error:
                is_late = origin.condition.latest_run is not None or asyncio.get_running_loop().time() >= deadline
                if error.code is not ErrorCode.THREAD_BUSY or is_late:
                    raise
            await self.readers.wait_for_close(deadline)

    async def _check_condition(self, condition: ThreadCondition, caller: Caller, thread_id: str) -> None:
        """Check a condition before the claim does. A run that the claim would refuse must not occupy the thread."""
        if condition.is_empty and await self.threads.has_messages(caller, thread_id):
            raise has_messages_error()
        if condition.latest_run is not None:
            latest = await self.runs.find_or_none(caller, thread_id)
            if latest is not None and latest.key.run_id != condition.latest_run:
                raise thread_busy()

    async def _show(self, run_input: RunAgentInput, caller: Caller) -> Subscription | None:
        """Read the stored thread as a run. Return None if it is empty and the agent may produce its first message."""
        if self._draining:
            raise shutting_down()
        with store_errors_as_app_errors():
            thread = await self.cluster.store.threads.changes(ThreadKey(caller.owner, run_input.thread_id))
        if self._responder is None and (thread is None or not thread.messages):
            return None
        interrupts = await self.runs.waiting(caller, run_input.thread_id)
        quota = self.quota.of(caller.identity)
        quota.check(Limit.STREAMS)
        quota.check(Limit.LOG_BYTES, 0 if thread is None else thread.size)
        quota.count(Limit.RUNS_PER_MINUTE)
        events = snapshot_events(run_input, caller, thread, interrupts, int(self.clock.time() * 1000))
        key = RunKey(caller.owner, run_input.thread_id, run_input.run_id)
        shown = ThreadSnapshot(key, events, self.registry.flusher, quota)
        return self.readers.open(shown, 0, caller)

    def _run(self, run_input: RunAgentInput, caller: Caller, recorder: RunRecorder) -> Run:
        memory = LogMemory(self._policy.limits.run_bytes, self.quota.of(caller.identity))
        on_flush = recorder.notify if self.cluster.durable else None
        log = EventLog(run_input.run_id, memory, self.registry.flusher, on_flush)
        pipeline = EventPipeline(self.new_id, log)
        services = RunServices(pipeline, log, self.registry, caller.identity)
        ctx = RunContext(
            thread_id=run_input.thread_id,
            run_id=run_input.run_id,
            caller=caller,
            tools=self._tools,
            new_id=self.new_id,
            logger=agent_logger,
            background=services.background,
            is_cancelled=services.has_ended,
            emit=services.emit,
            yield_turn=services.yield_turn,
            state=RunState(services.state, services.emit),
            limits=self._policy.run_limits(run_input.forwarded_props),
        )
        return Run(
            run_input,
            ctx,
            self.clock,
            log,
            pipeline,
            recorder=recorder,
            on_end=self.registry.run_ended,
            agent_name=self._name_of(run_input),
        )

    async def attach(self, caller: Caller, thread_id: str | None, run_id: str | None, after: int) -> Subscription:
        """Read the events of a run after ``seq`` ``after``.

        Raises:
            AppError: RUN_NOT_FOUND, STORE_UNAVAILABLE; VALIDATION_ERROR if ``after`` is ahead of the run;
                RATE_LIMIT_EXCEEDED if the identity or the process has too many open readers.
        """
        run = await self.runs.find_any(caller, thread_id, run_id)
        if isinstance(run, Run) and await wait_admitted(run):
            return self.readers.open(run, after, caller)
        record = run if isinstance(run, RunRecord) else await self.runs.find_stored(caller, thread_id, run_id)
        return self._attach_stored(record, after, caller)

    def _attach_stored(
        self, record: RunRecord, after: int, caller: Caller, fingerprint: bytes | None = None
    ) -> Subscription:
        check_same_messages(fingerprint, record.fingerprint)
        if not record.has_events or not self.cluster.durable:
            raise AppError(ErrorCode.RUN_NOT_FOUND, "This run has ended and its events are no longer kept.")
        return self.readers.open(RemoteRun(self.cluster, record), after, caller)

    # --- the process ---

    async def open(self) -> None:
        """Connect to the store and the bus, renew leases and watch the loop from now on, and mark the process as ready.

        Does nothing if the service is open.

        Raises:
            StoreUnavailable, BusUnavailable: the process cannot start without them.
        """
        async with self._opening:
            if not self.health.ready:
                await self._open()

    async def _open(self) -> None:
        await self.cluster.open()
        if self.cluster.durable:
            self._tasks.append(asyncio.create_task(self.leases.run(), name="leases"))
        monitor = LoopMonitor(self.health, self.registry)
        self._tasks.append(asyncio.create_task(monitor.run(), name="loop monitor"))
        self.health.start()
        observe_engine(self._counts)

    @property
    def is_draining(self) -> bool:
        """True since ``drain`` began."""
        return self._draining

    def call_on_drain(self, callback: Callable[[], None]) -> None:
        """Call a function when ``drain`` begins."""
        self._drain_callbacks.append(callback)

    def is_serving(self) -> bool:
        """Return True if new runs are accepted: after initialisation and before the drain."""
        return self.health.ready and not self._draining

    async def drain(self, grace: float) -> None:
        """Refuse new runs and end the open ones after ``grace`` seconds. Does nothing when called again."""
        if not self._draining:
            self._draining = True
            for callback in self._drain_callbacks:
                callback()
            await self.registry.drain(grace)

    async def wait_for_readers(self, seconds: float) -> None:
        """Wait after a drain, for ``seconds`` at most, until all readers are at their ends. The store has half."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.registry.stop_recorders(seconds / 2), name="stop recorders")
            tasks.create_task(self.readers.wait_all_closed(seconds), name="wait for readers")

    async def aclose(self) -> None:
        """Close the connections to models, tools, the store and the bus. No run may be open any more."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self.registry.stop_recorders(0)
        for close in self._closers:
            await close()
        await self.cluster.aclose()
