"""One run, top to bottom: RUN_STARTED, the agent's events through the one funnel, what is owed, one terminal event.

Rule: whatever the agent does, readers see a legal run; the funnel is its only way in. Ending is synchronous: whoever
ends a run (the agent, a cancel, the timeout, a drain) writes the closers and the terminal event at once, and only then
the agent is unwound. So nothing can come after the end, and no agent can hold the end up. Source: AG-UI spec 1.1,
events/lifecycle; the first of the promises in docs/architecture.md.
"""

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context, copy_context

from ag_ui.core import BaseEvent, RunAgentInput, RunErrorEvent, RunFinishedEvent, RunStartedEvent

from app.closing import closing
from app.core.encoder import encode
from app.core.errors import AppError, IllegalEvent, run_error
from app.core.order import KINDS
from app.engine.admission import Admission
from app.engine.audience import Audience
from app.engine.boundary import (
    AGENT_FAILED,
    ALREADY_RUN,
    TOOK_TOO_LONG,
    End,
    Fields,
    cancelled,
    concluded,
    not_begun,
    reckoned,
    started,
    warned,
)
from app.engine.ending import ending_of
from app.engine.fairness import BURST, EVENT_COST, FairScheduler
from app.engine.funnel import Funnel
from app.engine.ledger import AlreadyRun, Ledger
from app.engine.log import RunLog
from app.engine.pauses import Stepwise
from app.engine.status import Status
from app.ports import LOG_FIELDS, Agent, Clock, RunContext, Timer
from app.ports.records import RunKey, RunStatus
from app.telemetry import RunTrace

logger = logging.getLogger(__name__)


class Run:
    """One ``RunAgentInput`` being answered.

    Args:
        run_input: what is asked.
        ctx: what the agent is given.
        log: where its events go.
        funnel: their way there.
        ledger: writes it down; None for a run that is only shown.
        on_end: called once, synchronously, when the run is over for its readers.
    """

    def __init__(  # noqa: PLR0913 - what a run is made of
        self,
        run_input: RunAgentInput,
        ctx: RunContext,
        clock: Clock,
        log: RunLog,
        funnel: Funnel,
        *,
        ledger: Ledger | None,
        on_end: Callable[["Run"], None],
    ) -> None:
        self.ctx = ctx
        self.key = ledger.key if ledger is not None else RunKey(ctx.caller.owner, ctx.thread_id, ctx.run_id)
        """What makes a run the same run."""
        self.log = log
        self.status = Status.QUEUED
        self.started_at = clock.time()
        self.ended_at: float | None = None
        self.error: bytes | None = None
        self.audience = Audience()
        self._input: RunAgentInput | None = run_input
        self._parent_run_id = run_input.parent_run_id
        self._clock = clock
        self._on_end = on_end
        self.ledger = ledger
        self.admission = Admission()
        self._funnel = funnel
        self._task: asyncio.Task[None] | None = None
        self._timer: Timer | None = None
        self._context: Context | None = copy_context()  # of who asks; its turn comes in another's
        self._trace = RunTrace()
        self._absorbed, self._opening = False, 0

    def start(self, agent: Agent, scheduler: FairScheduler) -> asyncio.Task[None]:
        """Begin, for as long as the run may take, in bursts: readers have what was said when there is a wait.

        The caller owns the task and awaits it.
        """
        main = Stepwise(self._main(agent, scheduler), self.log.burst)
        self._task = asyncio.create_task(main, name=f"run {self.ctx.run_id}", context=self._context)
        self._task.add_done_callback(self._done)
        return self._task

    def _done(self, _: asyncio.Task[None]) -> None:
        self._task = None  # one that is kept would keep its context

    async def _main(self, agent: Agent, scheduler: FairScheduler) -> None:
        """All of the run, in one coroutine: each more would be passed through for each token."""
        LOG_FIELDS.set(self.ctx.log_fields)
        if self.ledger is not None:  # one that only shows what is kept asks no agent
            self._trace.begin(self.ctx)
        log, left = self.log, BURST
        try:
            if not await self._begin() or self._input is None:
                return
            async with closing(agent.run(self._input, self.ctx)) as stream:
                async for item in stream:
                    goes_on = log.goes_on  # as ``Funnel.emit`` does, which would be a call more for each token
                    if goes_on is None or not goes_on.takes(item):
                        if log.ended:
                            logger.warning("the agent went on after the end of its run; the rest is dropped")
                            break
                        self._funnel.look_at(item)
                        left -= EVENT_COST - 1
                    del item  # the agent may be long about the next one
                    left -= 1
                    if left <= 0:
                        left = BURST
                        if not log.ended:
                            await scheduler.yield_turn(log)
            self.finish()
        except BaseException as error:  # also SystemExit, which must not stop the server
            if not self._failed(error):
                raise
        finally:
            self._leave()

    async def _begin(self) -> bool:
        """Have the thread, and what is kept of it. False where somebody else has it, or the run has ended meanwhile."""
        run_input = self._input
        try:
            if run_input is not None and self.ledger is not None:
                self._input = await self.ledger.begin(run_input)
        except (AlreadyRun, AppError) as error:
            self._refuse(error)
        except Exception:
            logger.exception("the run could not begin")
            self._refuse(not_begun())
        if self.log.ended or self._input is None:
            return False
        if self._input is not run_input:
            self._funnel.start_from(self._input)
        self.admission.settle()
        self._announce()
        self._timer = self._clock.call_later(self.ctx.allowance.seconds, self._expire)
        self._funnel.cross = self._cross
        await asyncio.sleep(0)  # the run's beginning is on its way before the agent does anything, which may block
        return True

    def _refuse(self, error: AlreadyRun | AppError) -> None:
        # Once it has waited in line, or the thread is its own, it is a run and needs an end.
        if self.admission.is_settled or (self.ledger is not None and self.ledger.claimed):
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
                    if not self.log.ended:  # whoever else cancels it, such as a drain, has ended the run first
                        self._blame("the agent cancelled its own task")
                    return False
                case AppError():
                    logger.warning("the run failed: %s: %r", error.code, error.message, exc_info=not error.is_callers)
                    self.fail(error)
                case IllegalEvent():
                    self._blame(f"the agent broke the protocol: {error}")
                case _:
                    self._blame(f"the agent raised {type(error).__name__}")
        except Exception:
            logger.exception("the run cannot end as it should")  # such as with a message that no event can hold
            self.fail(AGENT_FAILED)
        return True

    def _leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            del self._funnel.cross

    # --- what begins and ends it ---

    def _cross(self, event: BaseEvent) -> None:
        """The agent's own idea of where its run begins and ends."""
        match event:
            case RunStartedEvent():
                self._absorb_start()
            case RunFinishedEvent():
                self.finish(event)
            case RunErrorEvent():
                self._end(event, Status.ERROR, failure=event.message)

    def _announce(self) -> None:
        self.status = Status.RUNNING
        self._funnel.write(started(self.ctx, self._parent_run_id, self._now_ms()))
        for lapse in self.ledger.lapses if self.ledger else ():
            self._funnel.write(warned(lapse))
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
        if self.log.ended:
            return
        self._funnel.flush()
        self._end(*concluded(event, self.ctx, self._funnel.pending))

    def cancel(self) -> None:
        """End as cancelled, now. Harmless once the run has ended."""
        if self.log.ended:
            return
        if self.status is Status.QUEUED:
            self._announce()
        self._end(cancelled(self.ctx), Status.CANCELLED, failure="The run was cancelled.")
        self._unwind()

    def fail(self, error: AppError) -> None:
        """End with RUN_ERROR, now. Harmless once the run has ended."""
        if self.log.ended:
            return
        if self.status is Status.QUEUED:
            self._announce()
        self._end(run_error(error, self.ctx.caller.request_id), Status.ERROR, failure=error.message)
        self._unwind()

    def _blame(self, cause: str) -> None:
        logger.error("%s", cause, exc_info=True)  # noqa: LOG014 - called while the exception is handled
        self.fail(AGENT_FAILED)

    def _end(self, event: End, status: Status, said: Fields | None = None, *, failure: str | None = None) -> None:
        """Write what is owed and the terminal event, with what it is to say. The only place where a run ends."""
        self.ctx.usage[:0] = event.usage or ()
        event = reckoned(event, self.ctx.usage, self._now_ms(), said)
        data = encode(event)
        try:
            self._funnel.close(failure)
        except (IllegalEvent, ValueError):
            logger.exception("the run cannot be closed in order")
            status, event = Status.ERROR, run_error(AGENT_FAILED, self.ctx.caller.request_id)
            data = encode(event)
        left = self._funnel.left(self.ctx.run_id)
        self._funnel.accept(KINDS[type(event)], event, data)
        self.ended_at = self._clock.time()
        ending = ending_of(event, RunStatus(status), self.ended_at, left)
        self.error = ending.error
        if self.ledger is not None:
            self.ledger.end(ending)
        self._input = self._context = None
        self.admission.settle()
        self._funnel.release()
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
