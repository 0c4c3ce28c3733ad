"""One run, top to bottom: RUN_STARTED, the agent's events through the pipeline, closing events, one terminal event.

Rule: readers see a legal run, whatever the agent does. Ending is synchronous: the agent's end, a cancel, the timeout
and a drain write the closing events and the terminal event at once, and the agent is unwound afterwards. So no event
can follow the end, and no agent can delay it. Source: AG-UI spec 1.1, events/lifecycle.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence

from ag_ui.core import (
    BaseEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
)
from msgspec import Struct

from agui_container.conversation.agent_input import input_for_agent
from agui_container.log_values import FACTS, format_fields
from agui_container.ports import LOG_FIELDS, Agent, ClientOffer, Clock, Item, RunContext, Timer, interrupts_of
from agui_container.ports.agent import maybe_aclosing
from agui_container.ports.records import RunStatus, StoreWarning
from agui_container.protocol.encoder import encode, encode_whole
from agui_container.protocol.errors import AppError, run_error
from agui_container.protocol.token_usage import count_tokens
from agui_container.run.endings import (
    AGENT_FAILED,
    RUN_TIMED_OUT,
    CancelReason,
    EventFields,
    TerminalEvent,
    complete_finish_event,
    ends_turn,
    error_json,
    finished_event,
    make_ending,
    own_questions,
    start_event,
    warning_event,
    with_totals,
)
from agui_container.run.event_log import EventLog, LocalSubscription
from agui_container.run.fairness import BURST, EVENT_COST, FairScheduler
from agui_container.run.life import Readers, RunLife, RunPhase
from agui_container.run.notes import end_notes
from agui_container.run.pipeline import EventPipeline
from agui_container.run.policy import NO_CONDITION, OnBusy, ThreadCondition
from agui_container.run.recorder import RunRecorder
from agui_container.run.subscription import OnClose, Readable
from agui_container.run.user_code import raised_at
from agui_container.telemetry.instruments import CANCEL_REASON, CANCELS
from agui_container.telemetry.spans import RunTrace
from agui_core.expander import IllegalEvent

logger = logging.getLogger(__name__)


class RunOrigin(Struct, frozen=True):
    """The request that a run comes from.

    Attributes:
        size: bytes of the request.
        condition: condition on the thread.
        on_busy: treatment of other runs of the thread.
        offer: changes of the client's tools and context while the run lasts.
        is_answer: True if the id is derived from that of the run whose interrupts are answered.
    """

    size: int = 0
    condition: ThreadCondition = NO_CONDITION
    on_busy: OnBusy = OnBusy.REJECT
    offer: ClientOffer | None = None
    is_answer: bool = False


class Run:
    """One ``RunAgentInput`` being answered. ``on_end`` is called once, when the run has ended for its readers."""

    def __init__(  # noqa: PLR0913 - the engine hands over each part of a run by name
        self,
        run_input: RunAgentInput,
        origin: RunOrigin,
        ctx: RunContext,
        *,
        clock: Clock,
        log: EventLog,
        pipeline: EventPipeline,
        recorder: RunRecorder,
        grace: float | None,
        on_end: Callable[["Run"], None],
        agent_name: str,
        describe_failure: Callable[[BaseException], AppError],
    ) -> None:
        self.life = RunLife()
        self.input: RunAgentInput | None = run_input
        """The input, until the run has begun or its messages are stored."""
        self.origin = origin
        self.fingerprint: bytes | None = None
        """Fingerprint of the input, once it is known."""
        self.ctx = ctx
        self.key, self.thread = recorder.key, recorder.thread
        self.log = log
        self.started_at = clock.time()
        self.ended_at: float | None = None
        self.error: bytes | None = None
        self.readers = Readers(clock, grace, self.cancel)
        self.recorder = recorder
        self.cancelled_by: CancelReason | None = None
        self.predecessors: dict[str, None] = {}
        """Ids of the runs of the thread that end before this one begins."""
        self.is_live = True
        """True until the end of the run is stored, or cannot be stored."""
        self.is_claiming = False
        """True while the store is asked to begin the run, which it may do."""
        self.is_enqueued = False
        """True if the store had the run before it began."""
        self.turn: asyncio.Event | None = None
        """Set when the run is the first one in the queue of its thread. None if it was from the beginning."""
        self._ended_as: RunStatus | None = None
        self._clock = clock
        self._on_end = on_end
        self._agent_name = agent_name
        self._describe_failure = describe_failure
        self._pipeline = pipeline
        self._task: asyncio.Task[None] | None = None
        self._timer: Timer | None = None
        self._trace = RunTrace()
        self._opening_events = 0

    # --- beginning ---

    @property
    def pending_input(self) -> RunAgentInput:
        assert self.input is not None  # noqa: S101 - only runs whose messages are not stored are asked
        return self.input

    @property
    def status(self) -> RunStatus:
        if self._ended_as is not None:
            return self._ended_as
        return RunStatus.RUNNING if self.life.has_begun else RunStatus.QUEUED

    def begin(
        self, run_input: RunAgentInput, warnings: Sequence[StoreWarning], agent: Agent, scheduler: FairScheduler
    ) -> asyncio.Task[None]:
        """Start the agent with the complete input. The caller owns the task, which ends with the agent."""
        self.life.enter(RunPhase.RUNNING)
        self._send_started(run_input)
        for warning in warnings:
            self._pipeline.write(warning_event(warning))
        self._opening_events = len(self.log)
        self._timer = self._clock.call_later(self.ctx.limits.seconds, self._expire)
        self._pipeline.on_boundary = self._on_boundary
        self._pipeline.on_first_event = self._on_first_event
        self._pipeline.acquire_state()
        self.input = None
        self._task = asyncio.create_task(self._main(run_input, agent, scheduler), name=f"run {self.ctx.run_id}")
        self._task.add_done_callback(self._forget_task)
        # After the first step of the task: what the agent has ready by then leaves in one write with RUN_STARTED.
        asyncio.get_running_loop().call_soon(self.life.settle)
        return self._task

    def refuse(self, error: AppError) -> None:
        """Refuse the run, or end one that the store may have with RUN_ERROR. Harmless once the run has ended."""
        if self.life.phase is RunPhase.ADMITTING and not self.is_claiming:
            self.drop(error)
        else:
            self.fail(error)

    def drop(self, outcome: AppError | Readable) -> None:
        """Answer the request by an error or by another run. This one leaves nothing behind."""
        self.life.drop(outcome)
        self.input = None
        self.readers.end()
        self.log.end()
        self._on_end(self)
        self.life.settle()

    def subscribe(self, after: int = 0, on_close: OnClose | None = None) -> LocalSubscription:
        return LocalSubscription(self, self.log, after, on_close)

    # --- the agent ---

    def _forget_task(self, _: asyncio.Task[None]) -> None:
        self._task = None  # the task has a reference to its context
        self._pipeline.release_state()

    async def _main(self, run_input: RunAgentInput, agent: Agent, scheduler: FairScheduler) -> None:
        self._trace.begin(self.ctx)
        try:
            await self._iterate(agent.run(input_for_agent(run_input), self.ctx), scheduler)
            self.finish()
        except BaseException as error:  # also KeyboardInterrupt: a signal is the operator's, an exception the agent's
            if not self._handle_failure(error):
                raise
        finally:
            self._stop_timer()

    async def _iterate(self, items: AsyncIterator[Item], scheduler: FairScheduler) -> None:
        """Submit the items of the agent. Yield to other runs after ``BURST`` deltas or equal work."""
        submit, log, remaining = self._pipeline.submit, self.log, BURST
        async with maybe_aclosing(items) as stream:
            async for item in stream:
                if log.has_ended:
                    logger.warning("agent continued after the end of its run, its events are dropped")
                    return
                remaining -= 1 if submit(item) else EVENT_COST
                del item  # free its memory while the agent waits for the next one
                if remaining <= 0:
                    remaining = BURST
                    await scheduler.yield_turn(log)

    def _handle_failure(self, error: BaseException) -> bool:
        """Return False if the exception must be raised again."""
        try:
            if interrupts := interrupts_of(error):
                self.finish(finished_event(self.ctx, RunFinishedInterruptOutcome(interrupts=list(interrupts))))
                return True
            match error:
                case asyncio.CancelledError() if is_being_cancelled():
                    if not self.log.has_ended:  # the engine ends a run before it cancels the task
                        self._log_fault(logging.ERROR, "agent cancelled its own task", error)
                        self.fail(self._describe_failure(error))
                    return False
                case AppError():
                    self._log_fault(logging.WARNING, "run failed", error, code=error.code, message=error.message)
                case IllegalEvent():
                    facts = {"agent": self._agent_name, "error": error}
                    self._log_fault(logging.ERROR, "agent broke the protocol", error, **facts)
                case _:
                    self._log_fault(logging.ERROR, "agent raised an exception", error, type=type(error).__name__)
            self.fail(self._describe_failure(error))
        except Exception:
            logger.exception("run could not end in order")  # the error message may be too large for an event
            self.fail(AGENT_FAILED)
        return True

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- first and last events of the agent ---

    def _on_boundary(self, event: BaseEvent) -> None:
        match event:
            case RunStartedEvent():
                self._absorb_start()
            case RunFinishedEvent():
                self.finish(event)
            case RunErrorEvent():
                self._end(event, RunStatus.ERROR, failure=event.message)

    def _on_first_event(self) -> None:
        self._trace.first_event(self._seconds_until(self._clock.time()))

    def _seconds_until(self, moment: float) -> float:
        return max(0.0, moment - self.started_at)  # the clock may have been set back

    def _send_started(self, run_input: RunAgentInput) -> None:
        self._pipeline.start_from(run_input, self.ctx.turn.repeated_calls)
        self._pipeline.write(start_event(self.key, run_input.parent_run_id, self._now_ms()))

    def _absorb_start(self) -> None:
        """Drop a RUN_STARTED that the agent sends first, because the engine has sent one already."""
        if len(self.log) > self._opening_events:
            raise IllegalEvent("RUN_STARTED inside an active run")
        self._opening_events = -1  # a second one is illegal

    # --- ends ---

    def finish(self, event: RunFinishedEvent | None = None) -> None:
        """End with RUN_FINISHED, the agent's or a plain success. Harmless once the run has ended."""
        if self.log.has_ended:
            return
        self._pipeline.flush_chunks()
        self._end(*complete_finish_event(event, self.ctx, self._pipeline.pending_calls))

    def cancel(self, reason: CancelReason = CancelReason.CALLER) -> None:
        """End as cancelled, now. Harmless once the run has ended."""
        if self.log.has_ended:
            return
        self.cancelled_by = reason
        CANCELS.add(1, {CANCEL_REASON: reason})
        self._start_unstarted()
        self._end(
            finished_event(self.ctx, RunFinishedCancelledOutcome()),
            RunStatus.CANCELLED,
            failure="The run was cancelled.",
        )
        self._unwind()

    def fail(self, error: AppError) -> None:
        """End with RUN_ERROR, now. Harmless once the run has ended."""
        if self.log.has_ended:
            return
        self._start_unstarted()
        self._end(run_error(error, self.ctx.caller.request_id), RunStatus.ERROR, failure=error.message)
        self._unwind()

    def _start_unstarted(self) -> None:
        """Let readers have the end of a run that has not begun, whether it is stored or not."""
        if not self.life.has_begun and self.input is not None:
            self._send_started(self.input)
            self.log.release()

    def lose(self, error: AppError) -> RunErrorEvent:
        """End with RUN_ERROR, now. Replaces the end of an ended run, which is not stored and which no reader saw."""
        self.fail(error)
        event = run_error(error, self.ctx.caller.request_id)
        self._ended_as, self.error = RunStatus.ERROR, error_json(event)
        return with_totals(event, self.ctx.usage, self._now_ms(), None)

    def _log_fault(self, level: int, phrase: str, cause: BaseException, **facts: object) -> None:
        position = raised_at(cause)
        if position is not None:
            facts["at"] = position
        is_breach = isinstance(cause, IllegalEvent | AppError) and position is None
        is_explained = is_breach or (isinstance(cause, AppError) and cause.is_caller_fault)
        exc_info = None if is_explained else cause
        logger.log(level, "%s", f"{phrase} {format_fields(facts)}".strip(), exc_info=exc_info)

    def _end(
        self, event: TerminalEvent, status: RunStatus, fields: EventFields | None = None, *, failure: str | None = None
    ) -> None:
        """Write the closing events and the terminal event, with ``fields`` set on it. Every run ends here."""
        self.ctx.usage[:0] = event.usage or ()
        now = self._clock.time()
        event = with_totals(event, self.ctx.usage, int(now * 1000), fields)
        event, data = encode_whole(event)  # before closing, because an event that cannot be encoded must change nothing
        if self.recorder.is_end_held and self.life.phase is RunPhase.RUNNING:
            self.log.hold()
        try:
            self._pipeline.close(failure, self.ctx.turn.started_calls)
        except (IllegalEvent, ValueError):
            logger.exception("run could not be closed in order %s", format_fields({"run": self.ctx.run_id}))
            status, event = RunStatus.ERROR, run_error(AGENT_FAILED, self.ctx.caller.request_id)
            data = encode(event)
        self._pipeline.write_encoded(event, data)
        self.ended_at = now
        result = self._pipeline.result(self.ctx.run_id)
        questions = own_questions(event, self.ctx.turn.stored_interrupts)
        notes = end_notes(self.key, result.entries, questions) if result.entries or questions else ()
        ending = make_ending(event, status, now, result, notes)
        self.error = ending.error
        self.recorder.end(ending, ends_turn=ends_turn(event) and bool(self.ctx.turn.notes))
        self._pipeline.release()
        self._ended_as = status
        self.life.enter(RunPhase.ENDED)
        self.readers.end()
        self.log.end()
        self._on_end(self)
        self.life.settle()
        seconds = self._seconds_until(now)
        self._trace.end(event, status, seconds)
        self._log_end(event, status, seconds)

    def _log_end(self, event: TerminalEvent, status: RunStatus, seconds: float) -> None:
        """Log the end in one line, with the ids of the run and not those of a request that has cancelled it."""
        error_code = (event.code or status) if isinstance(event, RunErrorEvent) else None
        facts = {
            "agent": self._agent_name,
            "outcome": str(error_code or status),
            "ms": round(seconds * 1000),
            "events": len(self.log),
            "tokens": count_tokens(self.ctx.usage),
        }
        ids = {"run": self.ctx.run_id, "thread": self.ctx.thread_id}
        outer = LOG_FIELDS.set(self.ctx.log_fields)
        logger.info("run finished %s", format_fields({**ids, **facts}), extra={FACTS: facts})
        LOG_FIELDS.reset(outer)

    def _expire(self) -> None:
        self.fail(RUN_TIMED_OUT)
        self._unwind()

    def _unwind(self) -> None:
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    def _now_ms(self) -> int:
        return int(self._clock.time() * 1000)


def is_being_cancelled() -> bool:
    """A local variable for the task in the caller would make a reference cycle with its exception and frame."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
