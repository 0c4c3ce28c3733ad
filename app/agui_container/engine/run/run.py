"""One run, top to bottom: RUN_STARTED, the agent's events through the pipeline, closing events, one terminal event.

Rule: readers see a legal run, whatever the agent does. Ending is synchronous: the agent's end, a cancel, the timeout
and a drain write the closing events and the terminal event at once, and the agent is unwound afterwards. So no event
can follow the end, and no agent can delay it. Source: AG-UI spec 1.1, events/lifecycle; the first of the promises in
docs/architecture.md.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextvars import Context, copy_context

from ag_ui.core import BaseEvent, RunAgentInput, RunErrorEvent, RunFinishedEvent, RunStartedEvent

from agui_container.engine.log.event_log import EventLog
from agui_container.engine.log.subscription import LocalSubscription, Presence
from agui_container.engine.outcome import CancelReason, Status, error_json, make_ending
from agui_container.engine.persistence.recorder import RunAlreadyStored, RunRecorder, StoreState
from agui_container.engine.run.fairness import BURST, EVENT_COST, FairScheduler
from agui_container.engine.run.pipeline import EventPipeline
from agui_container.engine.terminal_events import (
    AGENT_FAILED,
    RUN_ID_USED,
    RUN_TIMED_OUT,
    EventFields,
    TerminalEvent,
    cancelled_event,
    complete_finish_event,
    interrupted_event,
    start_event,
    start_failed_error,
    warning_event,
    with_totals,
)
from agui_container.ports import LOG_FIELDS, Agent, Clock, Item, RunContext, Timer, interrupts_of
from agui_container.ports.records import RunStatus
from agui_container.protocol.encoder import encode, encode_whole
from agui_container.protocol.errors import AppError, IllegalEvent, run_error
from agui_container.protocol.token_usage import count_tokens
from agui_container.runtime.aclosing import maybe_aclosing
from agui_container.runtime.log_values import FACTS, format_fields
from agui_container.runtime.user_code import raised_at
from agui_container.telemetry import CANCEL_REASON, CANCELS, RunTrace

logger = logging.getLogger(__name__)


class Admission:
    """Admission of one run: accepted or refused, once. The first reader waits for it before anything is sent.

    A run is admitted before readers see its first event, or when it is queued on its thread.
    """

    __slots__ = ("_error", "is_settled", "waiters")

    def __init__(self) -> None:
        self.is_settled = False
        """True if the run was accepted or refused."""
        self._error: Exception | None = None
        self.waiters: tuple[asyncio.Future[None], ...] = ()

    def settle(self, error: Exception | None = None) -> None:
        """Accept the run, or refuse it with ``error``. Does nothing when called again."""
        if self.is_settled:
            return
        self.is_settled, self._error = True, error
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)
        self.waiters = ()

    async def wait(self) -> None:
        """Wait until the run is accepted. Raises the error of a refused run."""
        if not self.is_settled:
            waiter = asyncio.get_running_loop().create_future()
            self.waiters += (waiter,)
            await waiter
        if self._error is not None:
            raise self._error


class Run:
    """One ``RunAgentInput`` being answered.

    Args:
        run_input: the input of the run.
        ctx: the context for the agent.
        clock: the time and timers.
        log: the events of the run.
        pipeline: validates events and appends them to the log.
        recorder: stores the run.
        on_end: called once, synchronously, when the run has ended for its readers.
        agent_name: name of the agent in the log.

    Attributes:
        key: owner, thread and run.
        error: JSON of the error of a failed run, or None.
    """

    def __init__(  # noqa: PLR0913 - the service hands over each part of a run by name
        self,
        run_input: RunAgentInput,
        ctx: RunContext,
        clock: Clock,
        log: EventLog,
        pipeline: EventPipeline,
        *,
        recorder: RunRecorder,
        on_end: Callable[["Run"], None],
        agent_name: str,
    ) -> None:
        self.ctx = ctx
        self.key = recorder.key
        self.log = log
        self.status = Status.QUEUED
        self.started_at = clock.time()
        self.ended_at: float | None = None
        self.error: bytes | None = None
        self.presence = Presence()
        self._input: RunAgentInput | None = run_input
        self._parent_run_id = run_input.parent_run_id
        self._clock = clock
        self._on_end = on_end
        self._agent_name = agent_name
        self.recorder = recorder
        self.admission = Admission()
        self._pipeline = pipeline
        self._task: asyncio.Task[None] | None = None
        self._timer: Timer | None = None
        self._context: Context | None = copy_context()  # of the request; a queued run is started in another context
        self._trace = RunTrace()
        self._has_absorbed_start, self._opening_events = False, 0

    def start(self, agent: Agent, scheduler: FairScheduler) -> asyncio.Task[None]:
        """Start the run. The caller owns and awaits the task, which ends with the agent."""
        self._pipeline.acquire_state()
        main = self._main(agent, scheduler)
        self._task = asyncio.create_task(main, name=f"run {self.ctx.run_id}", context=self._context)
        self._task.add_done_callback(self._forget_task)
        return self._task

    def subscribe(self, after: int = 0, on_close: Callable[[], None] | None = None) -> LocalSubscription:
        """Read the events after ``seq`` ``after`` until the run ends."""
        return LocalSubscription(self, self.log, after, on_close)

    def _forget_task(self, _: asyncio.Task[None]) -> None:
        self._task = None  # the task has a reference to its context
        self._pipeline.release_state()

    async def _main(self, agent: Agent, scheduler: FairScheduler) -> None:
        LOG_FIELDS.set(self.ctx.log_fields)
        self._trace.begin(self.ctx)
        try:
            if await self._begin() and self._input is not None:
                await self._iterate(agent.run(self._input, self.ctx), scheduler)
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

    async def _begin(self) -> bool:
        """Claim the thread, merge the history and send RUN_STARTED.

        Return False if the run was refused or has ended meanwhile.
        """
        try:
            if self._input is not None:
                self._input = await self.recorder.begin(self._input)
        except (RunAlreadyStored, AppError) as error:
            self._refuse(error)
        except Exception:
            logger.exception("run could not begin")
            self._refuse(start_failed_error())
        if self.log.has_ended or self._input is None:
            return False
        self._send_started()
        self.admission.settle()  # after RUN_STARTED, because the request reads the first event when it wakes
        self._timer = self._clock.call_later(self.ctx.limits.seconds, self._expire)
        self._pipeline.on_boundary = self._on_boundary
        self._pipeline.on_first_event = self._on_first_event
        await asyncio.sleep(0)  # send RUN_STARTED before the agent begins, which may block the event loop
        return True

    def _refuse(self, error: RunAlreadyStored | AppError) -> None:
        # A run that was queued or has claimed its thread is visible to readers and needs a terminal event.
        if self.admission.is_settled or self.recorder.state is StoreState.CLAIMED:
            self.fail(error if isinstance(error, AppError) else RUN_ID_USED)
            return
        self.log.end()
        self._on_end(self)
        self.admission.settle(error)
        self._trace.refuse(error.code if isinstance(error, AppError) else RUN_ID_USED.code)

    def _handle_failure(self, error: BaseException) -> bool:
        """End the run, as interrupted or as failed. Return False if the exception must be raised again."""
        try:
            if interrupts := interrupts_of(error):
                self.finish(interrupted_event(self.ctx, interrupts))
                return True
            match error:
                case asyncio.CancelledError() if is_being_cancelled():
                    if not self.log.has_ended:  # the engine ends a run before it cancels the task
                        self._log_fault(logging.ERROR, "agent cancelled its own task", error)
                        self.fail(AGENT_FAILED)
                    return False
                case AppError():
                    self._log_fault(logging.WARNING, "run failed", error, code=error.code, message=error.message)
                    self.fail(error)
                case IllegalEvent():
                    self._log_fault(
                        logging.ERROR, "agent broke the protocol", error, agent=self._agent_name, error=error
                    )
                    self.fail(AGENT_FAILED)
                case _:
                    self._log_fault(logging.ERROR, "agent raised an exception", error, type=type(error).__name__)
                    self.fail(AGENT_FAILED)
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
        """Handle RUN_STARTED, RUN_FINISHED or RUN_ERROR of the agent."""
        match event:
            case RunStartedEvent():
                self._absorb_start()
            case RunFinishedEvent():
                self.finish(event)
            case RunErrorEvent():
                self._end(event, Status.ERROR, failure=event.message)

    def _on_first_event(self) -> None:
        self._trace.first_event(self._seconds_until(self._clock.time()))

    def _seconds_until(self, moment: float) -> float:
        return max(0.0, moment - self.started_at)  # the clock may have been set back

    def _send_started(self) -> None:
        """Write RUN_STARTED and the warnings of the store."""
        self.status = Status.RUNNING
        if self._input is not None:
            self._pipeline.start_from(self._input)
        self._pipeline.write(start_event(self.key, self._parent_run_id, self._now_ms()))
        for warning in self.recorder.warnings:
            self._pipeline.write(warning_event(warning))
        self._opening_events = len(self.log)

    def _absorb_start(self) -> None:
        """Drop a RUN_STARTED that the agent sends first, because the engine has sent one already."""
        if self._has_absorbed_start or len(self.log) > self._opening_events:
            raise IllegalEvent("RUN_STARTED inside an active run")
        self._has_absorbed_start = True

    # --- ends ---

    def finish(self, event: RunFinishedEvent | None = None) -> None:
        """End with RUN_FINISHED, the agent's or a plain success. Harmless once the run has ended.

        Raises:
            IllegalEvent: a call is still open on success.
            AppError: RUN_LIMIT_EXCEEDED, because the run is too large.
        """
        if self.log.has_ended:
            return
        self._pipeline.flush_chunks()
        self._end(*complete_finish_event(event, self.ctx, self._pipeline.pending_calls))

    def cancel(self, reason: CancelReason = CancelReason.CALLER) -> None:
        """End as cancelled, now. Harmless once the run has ended."""
        if self.log.has_ended:
            return
        CANCELS.add(1, {CANCEL_REASON: reason})
        if self.status is Status.QUEUED:
            self._send_started()
        self._end(cancelled_event(self.ctx), Status.CANCELLED, failure="The run was cancelled.")
        self._unwind()

    def fail(self, error: AppError) -> None:
        """End with RUN_ERROR, now. Harmless once the run has ended."""
        if self.log.has_ended:
            return
        if self.status is Status.QUEUED:
            self._send_started()
        self._end(run_error(error, self.ctx.caller.request_id), Status.ERROR, failure=error.message)
        self._unwind()

    def lose(self, error: AppError) -> RunErrorEvent:
        """End with RUN_ERROR, now. If the run has ended, replace its end, which is not stored and which no reader saw.

        Return the terminal event.
        """
        self.fail(error)
        event = run_error(error, self.ctx.caller.request_id)
        self.status, self.error = Status.ERROR, error_json(event)
        return with_totals(event, self.ctx.usage, self._now_ms(), None)

    def _log_fault(self, level: int, phrase: str, cause: BaseException, **facts: object) -> None:
        """Log the fault of an agent with the line of the user's code that raised the error."""
        position = raised_at(cause)
        if position is not None:
            facts["at"] = position
        is_breach = isinstance(cause, IllegalEvent | AppError) and position is None
        is_explained = is_breach or (isinstance(cause, AppError) and cause.is_caller_fault)
        exc_info = None if is_explained else cause
        logger.log(level, "%s", f"{phrase} {format_fields(facts)}".strip(), exc_info=exc_info)

    def _end(
        self, event: TerminalEvent, status: Status, fields: EventFields | None = None, *, failure: str | None = None
    ) -> None:
        """Write the closing events and the terminal event, with ``fields`` set on it. Every run ends here."""
        self.ctx.usage[:0] = event.usage or ()
        now = self._clock.time()
        event = with_totals(event, self.ctx.usage, int(now * 1000), fields)
        event, data = encode_whole(event)  # before closing, because an event that cannot be encoded must change nothing
        try:
            self._pipeline.close(failure)
        except (IllegalEvent, ValueError):
            logger.exception("run could not be closed in order %s", format_fields({"run": self.ctx.run_id}))
            status, event = Status.ERROR, run_error(AGENT_FAILED, self.ctx.caller.request_id)
            data = encode(event)
        self._pipeline.write_encoded(event, data)
        self.ended_at = now
        result = self._pipeline.result(self.ctx.run_id)
        ending = make_ending(event, RunStatus(status), now, result)
        self.error = ending.error
        self.recorder.end(ending, result.entries)
        self._input = self._context = None
        self.admission.settle()
        self._pipeline.release()
        self.status = status
        self.log.end()
        self._on_end(self)
        seconds = self._seconds_until(now)
        self._trace.end(event, status, seconds)
        self._log_end(event, status, seconds)

    def _log_end(self, event: TerminalEvent, status: Status, seconds: float) -> None:
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
        """End a run that exceeded its time. Unwind an agent that continues after the end of its run."""
        self.fail(RUN_TIMED_OUT)
        self._unwind()

    def _unwind(self) -> None:
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    def _now_ms(self) -> int:
        return int(self._clock.time() * 1000)


def is_being_cancelled() -> bool:
    """Return True if the current task is being cancelled.

    A local variable for the task in the caller would make a reference cycle of the task, its exception and the frame.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
