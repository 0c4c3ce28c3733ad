"""One run, top to bottom: RUN_STARTED, the agent's events through the pipeline, what is owed, one terminal event.

Rule: readers see a legal run, whatever the agent does. Ending is synchronous: the agent's end, a cancel, the timeout
and a drain write the closing events and the terminal event at once, and only then the agent is unwound. So nothing can
come after the end, and no agent can delay it. Source: AG-UI spec 1.1, events/lifecycle; the first of the promises in
docs/architecture.md.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextvars import Context, copy_context

from ag_ui.core import BaseEvent, RunAgentInput, RunErrorEvent, RunFinishedEvent, RunStartedEvent

from agui_container.engine.log.event_log import EventLog
from agui_container.engine.log.presence import Presence
from agui_container.engine.log.subscription import LocalSubscription
from agui_container.engine.outcome import Status, make_ending
from agui_container.engine.persistence.recorder import RunAlreadyStored, RunRecorder
from agui_container.engine.run.admission import Admission
from agui_container.engine.run.fairness import BURST, EVENT_COST, FairScheduler
from agui_container.engine.run.pipeline import EventPipeline
from agui_container.engine.terminal_events import (
    AGENT_FAILED,
    ALREADY_RUN,
    TOOK_TOO_LONG,
    End,
    Fields,
    cancel_event,
    finish_event,
    start_event,
    start_failed_error,
    warning_event,
    with_totals,
)
from agui_container.ports import LOG_FIELDS, Agent, Clock, Item, RunContext, Timer
from agui_container.ports.records import RunKey, RunStatus
from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import AppError, IllegalEvent, run_error
from agui_container.runtime.aclosing import maybe_aclosing
from agui_container.telemetry import RunTrace

logger = logging.getLogger(__name__)


class Run:
    """One ``RunAgentInput`` being answered.

    Args:
        run_input: what is asked.
        ctx: what the agent is given.
        log: where its events go.
        pipeline: the way into the log.
        ledger: stores the run; None for a run that only shows what is stored.
        on_end: called once, synchronously, when the run is over for its readers.
    """

    def __init__(  # noqa: PLR0913 - what a run is made of
        self,
        run_input: RunAgentInput,
        ctx: RunContext,
        clock: Clock,
        log: EventLog,
        pipeline: EventPipeline,
        *,
        recorder: RunRecorder | None,
        on_end: Callable[["Run"], None],
    ) -> None:
        self.ctx = ctx
        self.key = recorder.key if recorder is not None else RunKey(ctx.caller.owner, ctx.thread_id, ctx.run_id)
        """What makes a run the same run."""
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
        self.recorder = recorder
        self.admission = Admission()
        self._pipeline = pipeline
        self._task: asyncio.Task[None] | None = None
        self._timer: Timer | None = None
        self._context: Context | None = copy_context()  # of who asks; its turn comes in another's
        self._trace = RunTrace()
        self._absorbed, self._opening = False, 0

    def start(self, agent: Agent, scheduler: FairScheduler) -> asyncio.Task[None]:
        """Begin. The caller owns the task, which takes as long as the agent, and awaits it."""
        self._pipeline.keep_state()
        main = self._main(agent, scheduler)
        self._task = asyncio.create_task(main, name=f"run {self.ctx.run_id}", context=self._context)
        self._task.add_done_callback(self._forget_task)
        return self._task

    def subscribe(self, after: int = 0, on_close: Callable[[], None] | None = None) -> LocalSubscription:
        """Read the events after ``seq`` ``after`` until the run ends."""
        return LocalSubscription(self, self.log, after, on_close)

    def _forget_task(self, _: asyncio.Task[None]) -> None:
        self._task = None  # a task that is kept would keep its context
        self._pipeline.leave_state()

    async def _main(self, agent: Agent, scheduler: FairScheduler) -> None:
        LOG_FIELDS.set(self.ctx.log_fields)
        if self.recorder is not None:  # a run that only shows what is stored asks no agent
            self._trace.begin(self.ctx)
        try:
            if await self._begin() and self._input is not None:
                await self._iterate(agent.run(self._input, self.ctx), scheduler)
                self.finish()
        except BaseException as error:  # also SystemExit, which must not stop the server
            if not self._failed(error):
                raise
        finally:
            self._leave()

    async def _iterate(self, items: AsyncIterator[Item], scheduler: FairScheduler) -> None:
        """Submit what the agent yields. Other runs have their turn after a burst of ``BURST`` deltas or equal work."""
        submit, log, remaining = self._pipeline.submit, self.log, BURST
        async with maybe_aclosing(items) as stream:
            async for item in stream:
                if log.has_ended:
                    logger.warning("agent continued after the end of its run, the rest is dropped")
                    return
                remaining -= 1 if submit(item) else EVENT_COST
                del item  # the next one may take long
                if remaining <= 0:
                    remaining = BURST
                    await scheduler.yield_turn(log)

    async def _begin(self) -> bool:
        """Have the thread, and what is kept of it. False where somebody else has it, or the run has ended meanwhile."""
        run_input = self._input
        try:
            if run_input is not None and self.recorder is not None:
                self._input = await self.recorder.begin(run_input)
        except (RunAlreadyStored, AppError) as error:
            self._refuse(error)
        except Exception:
            logger.exception("the run could not begin")
            self._refuse(start_failed_error())
        if self.log.has_ended or self._input is None:
            return False
        if self._input is not run_input:
            self._pipeline.start_from(self._input)
        self._send_started()
        self.admission.settle()  # after it, because the request is to find the first event when it wakes
        self._timer = self._clock.call_later(self.ctx.allowance.seconds, self._expire)
        self._pipeline.on_boundary = self._on_boundary
        await asyncio.sleep(0)  # the run's beginning is on its way before the agent does anything, which may block
        return True

    def _refuse(self, error: RunAlreadyStored | AppError) -> None:
        # Once it has waited in line, or the thread is its own, it is a run and needs an end.
        if self.admission.is_settled or (self.recorder is not None and self.recorder.is_claimed):
            self.fail(error if isinstance(error, AppError) else ALREADY_RUN)
            return
        self.log.end()
        self._on_end(self)
        self.admission.settle(error)
        self._trace.refuse(error.code if isinstance(error, AppError) else ALREADY_RUN.code)

    def _failed(self, error: BaseException) -> bool:
        """Every failure of the agent's own becomes the run's. False for what is not the run's to handle."""
        try:
            match error:
                case KeyboardInterrupt():
                    return False
                case asyncio.CancelledError() if is_being_cancelled():
                    if not self.log.has_ended:  # whoever else cancels it, such as a drain, has ended the run first
                        self._log_failure("the agent cancelled its own task")
                    return False
                case AppError():
                    logger.warning(
                        "the run failed: %s: %r", error.code, error.message, exc_info=not error.is_caller_fault
                    )
                    self.fail(error)
                case IllegalEvent():
                    self._log_failure(f"the agent broke the protocol: {error}")
                case _:
                    self._log_failure(f"the agent raised {type(error).__name__}")
        except Exception:
            logger.exception("the run cannot end as it should")  # such as with a message that no event can hold
            self.fail(AGENT_FAILED)
        return True

    def _leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- what begins and ends it ---

    def _on_boundary(self, event: BaseEvent) -> None:
        """The agent's own idea of where its run begins and ends."""
        match event:
            case RunStartedEvent():
                self._absorb_start()
            case RunFinishedEvent():
                self.finish(event)
            case RunErrorEvent():
                self._end(event, Status.ERROR, failure=event.message)

    def _send_started(self) -> None:
        self.status = Status.RUNNING
        self._pipeline.write(start_event(self.ctx, self._parent_run_id, self._now_ms()))
        for warning in self.recorder.warnings if self.recorder else ():
            self._pipeline.write(warning_event(warning))
        self._opening = len(self.log)

    def _absorb_start(self) -> None:
        """RUN_STARTED is sent before the agent runs; an agent that opens with its own says the same again."""
        if self._absorbed or len(self.log) > self._opening:
            raise IllegalEvent("RUN_STARTED inside an active run")
        self._absorbed = True

    # --- ends ---

    def finish(self, event: RunFinishedEvent | None = None) -> None:
        """End with RUN_FINISHED, the agent's or a plain success. Harmless once the run has ended.

        Raises:
            IllegalEvent: a call is still open on success.
            AppError: the run has grown too large.
        """
        if self.log.has_ended:
            return
        self._pipeline.flush_chunks()
        self._end(*finish_event(event, self.ctx, self._pipeline.pending_calls))

    def cancel(self) -> None:
        """End as cancelled, now. Harmless once the run has ended."""
        if self.log.has_ended:
            return
        if self.status is Status.QUEUED:
            self._send_started()
        self._end(cancel_event(self.ctx), Status.CANCELLED, failure="The run was cancelled.")
        self._unwind()

    def fail(self, error: AppError) -> None:
        """End with RUN_ERROR, now. Harmless once the run has ended."""
        if self.log.has_ended:
            return
        if self.status is Status.QUEUED:
            self._send_started()
        self._end(run_error(error, self.ctx.caller.request_id), Status.ERROR, failure=error.message)
        self._unwind()

    def _log_failure(self, cause: str) -> None:
        logger.error("%s", cause, exc_info=True)  # noqa: LOG014 - called while the exception is handled
        self.fail(AGENT_FAILED)

    def _end(self, event: End, status: Status, said: Fields | None = None, *, failure: str | None = None) -> None:
        """Write what is owed and the terminal event, with what it is to say. The only place where a run ends."""
        self.ctx.usage[:0] = event.usage or ()
        event = with_totals(event, self.ctx.usage, self._now_ms(), said)
        data = encode(event)  # first, because an event that cannot be encoded must close nothing
        try:
            self._pipeline.close(failure)
        except (IllegalEvent, ValueError):
            logger.exception("the run cannot be closed in order")
            status, event = Status.ERROR, run_error(AGENT_FAILED, self.ctx.caller.request_id)
            data = encode(event)
        self._pipeline.write_encoded(event, data)
        self.ended_at = self._clock.time()
        result = self._pipeline.result(self.ctx.run_id)
        ending = make_ending(event, RunStatus(status), self.ended_at, result)
        self.error = ending.error
        if self.recorder is not None:
            self.recorder.end(ending)
        self._input = self._context = None
        self.admission.settle()
        self._pipeline.release()
        self.status = status
        self.log.end()
        self._on_end(self)
        self._trace.end(event, status, self.ended_at - self.started_at)

    def _expire(self) -> None:
        """The time is over, also for an agent that goes on behind the end of its run."""
        self.fail(TOOK_TOO_LONG)
        self._unwind()

    def _unwind(self) -> None:
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    def _now_ms(self) -> int:
        return int(self._clock.time() * 1000)


def is_being_cancelled() -> bool:
    """Whether somebody cancels the task. In a function: a frame that is left cancelled and knows its task is a ring."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
