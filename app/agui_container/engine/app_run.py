"""A request of an MCP App as a run: it is answered without an agent, takes no turn of its thread, and is not stored.

Rule: only its reader knows it. The request is cancelled if the reader leaves, and by a shutdown.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from ag_ui.core import (
    BaseEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
)

from agui_container.ports import RunContext, RunInterrupted
from agui_container.ports.records import RunKey
from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import AppError, run_error, shutting_down
from agui_container.protocol.parser import AppRequest
from agui_container.run.endings import describe_failure, start_event
from agui_container.run.event_log import EventLog, SingleReaderRun

logger = logging.getLogger(__name__)

AnswerApp = Callable[[AppRequest, RunAgentInput, RunContext], Awaitable[Mapping[str, object]]]
"""Returns the result of a request. Raises ``AppError``, or ``RunInterrupted`` if a person must answer first."""


async def no_server(request: AppRequest, _input: RunAgentInput, _ctx: RunContext) -> Mapping[str, object]:
    """Answer where no server is configured, as the middleware does for a server that it does not know."""
    return {"error": f"Unknown server: {request.server[:64]}"}


class AppRun(SingleReaderRun):
    """A request that is being answered. ``task`` ends with it."""

    def __init__(
        self,
        ctx: RunContext,
        answer: Callable[[], Awaitable[Mapping[str, object]]],
        log: EventLog,
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(RunKey(ctx.caller.owner, ctx.thread_id, ctx.run_id), log)
        self._ctx = ctx
        self._now_ms = now_ms
        self._append(start_event(self.key, None, now_ms()))
        self.task = asyncio.create_task(self._run(answer), name="app request")
        self.task.add_done_callback(self._end)

    def leave(self) -> None:
        self.task.cancel()
        self.task.add_done_callback(lambda _: self.log.discard())

    async def _run(self, answer: Callable[[], Awaitable[Mapping[str, object]]]) -> RunFinishedEvent | RunErrorEvent:
        """Return the last event."""
        _, thread_id, run_id = self.key
        try:
            result = await answer()
        except RunInterrupted as asked:
            outcome = RunFinishedInterruptOutcome(interrupts=list(asked.interrupts))
            return RunFinishedEvent(thread_id=thread_id, run_id=run_id, outcome=outcome)
        except Exception as error:
            if not isinstance(error, AppError):
                logger.exception("app request failed")
            return run_error(describe_failure(error), self._ctx.caller.request_id)
        return RunFinishedEvent(thread_id=thread_id, run_id=run_id, result=result, outcome=RunFinishedSuccessOutcome())

    def _end(self, task: asyncio.Task[RunFinishedEvent | RunErrorEvent]) -> None:
        stopped = run_error(shutting_down(), self._ctx.caller.request_id)
        self._append(stopped if task.cancelled() else task.result())
        self.log.end()

    def _append(self, event: BaseEvent) -> None:
        self.log.append(event.type, encode(event.model_copy(update={"timestamp": self._now_ms()})))
