"""The engine of one process: it starts, finds and reads runs, and ends them at shutdown.

Rule: every transport enters the engine here. Callers see their own runs only, and a retry of the same thread and run
ids joins that run instead of running it again.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

from ag_ui.core import AgentCapabilities, Interrupt, ResumeEntry, RunAgentInput
from msgspec.structs import replace

from agui_container.engine.admission import Admission
from agui_container.engine.files import Files
from agui_container.engine.finder import RunFinder
from agui_container.engine.health import Health, LoopMonitor
from agui_container.engine.inputs import check_same_messages, fingerprint_of
from agui_container.engine.limits import Limit, Policy, Quota
from agui_container.engine.registry import OpenReaders, RunRegistry
from agui_container.engine.single_reader_runs import AnswerApp, AppRun, no_server
from agui_container.engine.threads import ThreadCommands
from agui_container.ports import LOG_FIELDS, Agent, Caller, ClientOffer, Item, RunContext, RunState, ThreadCleanup, Tool
from agui_container.ports.files import FileStore
from agui_container.ports.records import RunKey, RunRecord
from agui_container.protocol.errors import AppError, shutting_down
from agui_container.protocol.parser import AppRequest, read_app_request
from agui_container.replicas.leases import Leases
from agui_container.run.cluster import Cluster
from agui_container.run.endings import describe_failure
from agui_container.run.event_log import EventLog
from agui_container.run.life import RunPhase
from agui_container.run.pipeline import EventPipeline
from agui_container.run.policy import NO_CONDITION, OnBusy, ThreadCondition
from agui_container.run.recorder import RunRecorder
from agui_container.run.run import Run, RunOrigin
from agui_container.run.subscription import Readable, Subscription
from agui_container.telemetry.instruments import (
    EVENTS,
    LIMIT_USE,
    OPEN_RUNS,
    QUEUED_RUNS,
    READER_LAG,
    READERS,
    Readings,
    observe_engine,
)
from agui_container.threads import LoopBridge, offload_if_large

logger = logging.getLogger(__name__)

agent_logger = logging.getLogger("agent")

CLOSE_SECONDS = 5.0
"""Longest wait for the agent's parts to close, and then for the bus."""


class Engine:
    """The engine of one process.

    Args:
        new_id: returns a new unique id. Nothing calls it before an id is needed.
        only_answers: True if the agent has nothing to do on a thread without messages. Any other agent may produce
            the first message of a thread.
        thread_cleanup: the agent, if it stores data of threads by itself.
        closers: close the connections of the agent's parts, when all runs have ended.
        name_of: returns the name of the agent that answers an input, for the log. Raises ``AppError`` if the input
            names an agent that is not served.
        files: the place of the callers' files; None if there is none.
        has_other_work: True while the agent has open work that the engine does not know of.
        answer_app: answers the requests of MCP Apps.
    """

    def __init__(  # noqa: PLR0913 - the composition root hands over each part by name
        self,
        agent: Agent,
        policy: Policy,
        cluster: Cluster,
        *,
        tools: Mapping[str, Tool],
        capabilities: AgentCapabilities,
        new_id: Callable[[], str],
        only_answers: bool = False,
        thread_cleanup: ThreadCleanup | None = None,
        closers: Sequence[Callable[[], Awaitable[None]]] = (),
        name_of: Callable[[RunAgentInput], str] = lambda _: "agent",
        has_other_work: Callable[[], bool] = lambda: False,
        files: FileStore | None = None,
        answer_app: AnswerApp = no_server,
    ) -> None:
        self.capabilities = capabilities
        self.health = Health(cluster.clock, has_other_work)
        self.cluster = cluster
        self.new_id = new_id
        self.describe_failure: Callable[[BaseException], AppError] = describe_failure
        """Returns what clients read of an exception of the agent, or of a shutdown."""
        self._answer_app = answer_app
        self._closers = closers
        self._closing: asyncio.Task[None] | None = None
        self._name_of = name_of
        self._policy = policy
        self.clock = cluster.clock
        self._tools = tools
        self.quota = Quota(policy.limits, policy.identity_limits, cluster.clock)
        self.registry = RunRegistry(policy.limits, self.quota, self.health)
        self.loop_monitor = LoopMonitor(self.health, self.registry.open_run_ids)
        self.readers = OpenReaders(self.registry)
        self.leases = (
            None
            if (store := cluster.durable) is None
            else Leases(cluster, store, self.registry.by_key, self.registry.release_unread)
        )
        """Leases of the runs in a durable store."""
        self.runs = RunFinder(self.registry, cluster, self._cancel_questions)
        self.files = Files(files, cluster.store, cluster.clock, new_id)
        self.threads = ThreadCommands(cluster, new_id, self.runs, self.files, thread_cleanup)
        self.admission = Admission(
            agent, cluster, self.registry, self.runs, self.readers, self._add_run, only_answers=only_answers
        )
        self.is_draining = False
        self._opening = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    # --- runs ---

    def busy_choice(self, run_input: RunAgentInput) -> OnBusy:
        """Return what an input does on a busy connection or thread. A request of an app ends no run of its chat."""
        is_of_app = read_app_request(run_input) is not None
        return OnBusy.ENQUEUE if is_of_app else self._policy.busy_choice(run_input.forwarded_props)

    async def admit(
        self,
        run_input: RunAgentInput,
        caller: Caller,
        size: int = 0,
        condition: ThreadCondition = NO_CONDITION,
        offer: ClientOffer | None = None,
    ) -> Subscription:
        """Register a run, wait until it is active or queued, and read it from its first event.

        If the run with these ids is known, that one is read. ``size`` are the bytes of the request, ``condition`` is
        one on the thread, and ``offer`` has the changes of the client's tools and context during the run.

        Raises:
            AppError: SHUTTING_DOWN, THREAD_BUSY, RATE_LIMIT_EXCEEDED, STORE_UNAVAILABLE; RUN_NOT_FOUND for a retry
                after the run's events were removed; VALIDATION_ERROR for a bad ``onBusy``, ``budget`` or ``agent`` in
                ``forwardedProps``, and for other messages than those of the run with these ids.
        """
        if (request := read_app_request(run_input)) is not None:
            return self.readers.open(self._run_app(request, run_input, caller), 0)
        known = self.registry.by_key.get(RunKey(caller.owner, run_input.thread_id, run_input.run_id))
        origin = RunOrigin(size, condition, offer=offer)
        subscription = self.readers.open(self.admission.register(run_input, caller, origin), 0)
        try:
            while isinstance(run := subscription.run, Run) and (other := await run.life.wait_settled()) is not None:
                subscription.close()
                subscription = self.readers.open(other, 0)
            if known is not None and subscription.run is known:
                fingerprint = await offload_if_large(size, fingerprint_of, run_input)
                check_same_messages(fingerprint, known.fingerprint)
        except BaseException:
            subscription.close()
            raise
        return subscription

    def _add_run(self, key: RunKey, run_input: RunAgentInput, caller: Caller, origin: RunOrigin) -> Run:
        if self.is_draining:
            raise shutting_down()
        run = self._run(key, run_input, caller, replace(origin, on_busy=self.busy_choice(run_input)))
        self.registry.add(run, self._live(run))
        return run

    async def _live(self, run: Run) -> None:
        """Admit a run and store it to its end."""
        LOG_FIELDS.set(run.ctx.log_fields)
        try:
            is_stored = await self.admission.admit(run) and await run.recorder.write(run.log, run.lose)
            if is_stored and self.cluster.durable is not None:
                run.life.enter(RunPhase.STORED)
        finally:
            self.registry.end_life(run)

    def _run_app(self, request: AppRequest, run_input: RunAgentInput, caller: Caller) -> AppRun:
        if self.is_draining:
            raise shutting_down()
        log = EventLog(run_input.run_id, self.quota.log_memory, self.registry.flusher)
        ctx = RunContext(
            thread_id=run_input.thread_id,
            run_id=run_input.run_id,
            caller=caller,
            tools={},
            new_id=self.new_id,
            logger=agent_logger,
            background=self.registry.background,
            is_cancelled=lambda: log.has_ended,
            emit=lambda _: None,
            state=RunState(dict, lambda _: None),
        )
        self.quota.take(caller.identity)
        answer = partial(self._answer_app, request, run_input, ctx)
        run = AppRun(ctx, answer, log, lambda: int(self.clock.time() * 1000))
        self.registry.background(run.task, partial(self.quota.release, caller.identity))
        return run

    def _run(self, key: RunKey, run_input: RunAgentInput, caller: Caller, origin: RunOrigin) -> Run:
        recorder = RunRecorder(self.cluster, key)
        on_flush = None if self.cluster.durable is None else recorder.notify
        log = EventLog(key.run_id, self.quota.log_memory, self.registry.flusher, on_flush)
        pipeline = EventPipeline(self.new_id, log)
        services = RunServices(pipeline, log, self.registry)
        ctx = RunContext(
            thread_id=key.thread_id,
            run_id=key.run_id,
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
            offer=origin.offer,
            file=partial(self.files.get, caller.owner),
        )
        return Run(
            run_input,
            origin,
            ctx,
            clock=self.clock,
            log=log,
            pipeline=pipeline,
            recorder=recorder,
            grace=self._policy.on_disconnect.grace,
            on_end=self.registry.run_ended,
            agent_name=self._name_of(run_input),
            describe_failure=self.describe_failure,
        )

    async def _cancel_questions(self, caller: Caller, thread_id: str, questions: Sequence[Interrupt]) -> None:
        answers = RunAgentInput(
            thread_id=thread_id,
            run_id=self.new_id(),
            messages=[],
            tools=[],
            context=[],
            state=None,
            forwarded_props={"approvals": {"onDenial": "cancel"}},
            resume=[ResumeEntry(interrupt_id=each.id, status="cancelled") for each in questions],
        )
        with contextlib.closing(await self.admit(answers, caller)) as reader:
            async for _ in reader:
                pass

    async def attach(self, caller: Caller, thread_id: str | None, run_id: str | None, after: int) -> Subscription:
        """Read the events of a run after ``seq`` ``after``.

        Raises:
            AppError: RUN_NOT_FOUND, STORE_UNAVAILABLE; VALIDATION_ERROR if ``after`` is ahead of the run.
        """
        run: Readable | RunRecord = await self.runs.find_any(caller, thread_id, run_id)
        try:
            while isinstance(run, Run) and (other := await run.life.wait_settled()) is not None:
                run = other
        except AppError:  # the run was refused
            run = await self.runs.find_stored(caller, thread_id, run_id)
        return self.readers.open(self.admission.stored(run) if isinstance(run, RunRecord) else run, after)

    # --- the process ---

    async def open(self) -> None:
        """Connect to the store and the bus, renew leases and watch the loop. Does nothing if the service is open."""
        async with self._opening:
            if not self.health.ready:
                await self._open()

    async def _open(self) -> None:
        await self.cluster.open()
        if self.leases is not None:
            self._tasks.append(asyncio.create_task(self.leases.run(), name="leases"))
        self._tasks.append(asyncio.create_task(self.loop_monitor.run(), name="loop monitor"))
        self.health.start()
        observe_engine(self)

    def readings(self) -> Readings:
        """Count for metrics. Any thread may ask, so nothing iterates over what the event loop may change meanwhile."""
        return {
            OPEN_RUNS.name: {"": self.registry.open_count},
            QUEUED_RUNS.name: {"": self.registry.queued_count},
            READERS.name: {"": self.readers.open_count},
            READER_LAG.name: {"": self.readers.longest_lag},
            EVENTS.name: {"": self.registry.flusher.event_count},
            LIMIT_USE.name: {Limit.RUNS: self.quota.open_runs, Limit.LOG_BYTES: self.quota.log_memory.used},
        }

    def is_serving(self) -> bool:
        return self.health.ready and not self.is_draining

    async def drain(self, grace: float) -> None:
        """Refuse new runs and end the open ones after ``grace`` seconds. Does nothing when called again."""
        if not self.is_draining:
            self.is_draining = True
            await self.registry.drain(grace, lambda: self.describe_failure(shutting_down()))

    async def wait_for_readers(self, seconds: float) -> None:
        """Wait after a drain, for ``seconds`` at most, until all readers are at their ends. The store has half."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.registry.stop_recorders(seconds / 2), name="stop recorders")
            tasks.create_task(self.readers.wait_all_closed(seconds), name="wait for readers")

    async def close_parts(self) -> None:
        """Close the connections of the agent's parts, such as models and tools. No run may be open any more."""
        if self._closing is None:
            self._closing = asyncio.create_task(close_all(self._closers, CLOSE_SECONDS), name="close parts")
        await asyncio.shield(self._closing)

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self.registry.stop_recorders(0)
        await self.close_parts()
        await close_all([self.cluster.bus.aclose], CLOSE_SECONDS)
        await close_all([self.cluster.store.aclose], None)  # its work has limits, and nobody would close what it uses


class RunServices:
    """Functions of a run's context: events, state, background work and turns. Any thread may call them.

    One object per run takes less memory than one closure per function.
    """

    __slots__ = ("_bridge", "_log", "_pipeline", "_registry")

    def __init__(self, pipeline: EventPipeline, log: EventLog, registry: RunRegistry) -> None:
        self._pipeline = pipeline
        self._log = log
        self._registry = registry
        self._bridge = LoopBridge(pipeline.submit_from_tool)

    def emit(self, item: Item) -> None:
        self._bridge.emit(item)

    def state(self) -> object:
        return self._bridge.call(self._pipeline.state.value)

    def background(self, work: Awaitable[object]) -> None:
        """Run work that may outlive the run. The run's last state can be read until the work is done."""
        self._bridge.call(lambda: self._start_background(work))

    def _start_background(self, work: Awaitable[object]) -> None:
        self._pipeline.acquire_state()
        self._registry.background(work, self._pipeline.release_state)

    async def yield_turn(self) -> None:
        await self._registry.scheduler.yield_turn(self._log)

    def has_ended(self) -> bool:
        return self._log.has_ended


async def close_all(closers: Iterable[Callable[[], Awaitable[None]]], seconds: float | None) -> None:
    """Call functions that close connections, side by side, and wait ``seconds`` at most. Log their failures."""
    tasks = [asyncio.create_task(_close(close), name="close connections") for close in closers]
    if tasks:
        await asyncio.wait(tasks, timeout=seconds)


async def _close(close: Callable[[], Awaitable[None]]) -> None:
    try:
        await close()
    except Exception:
        logger.exception("closing failed")
