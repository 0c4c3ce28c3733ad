"""Runs that are not stored, and that nobody but their reader knows: a stored thread that is shown, a request of an app.

Rule: a client that connects to a thread without new messages gets its history as snapshots, and pending interrupts as
the outcome of the run. No agent is called, and the run is complete when its reader begins. Source: AG-UI spec 1.1,
basic/threads.

Rule: a request of an MCP App is answered without an agent and takes no turn of its thread. It is cancelled if the
reader leaves, and by a shutdown.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ag_ui.core import (
    BaseEvent,
    EventType,
    Interrupt,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    StateSnapshotEvent,
)

from agui_container.conversation.state import load_state
from agui_container.ports import Caller, RunContext, RunInterrupted
from agui_container.ports.records import RunKey, ThreadDelta
from agui_container.protocol.encoder import MAX_EVENT_BYTES, encode
from agui_container.protocol.errors import AppError, ErrorCode, run_error, shutting_down
from agui_container.protocol.parser import AppRequest
from agui_container.run.endings import describe_failure, start_event
from agui_container.run.event_log import EventLog, Flusher, LocalSubscription, LogMemory
from agui_container.run.subscription import OnClose, Subscription

SNAPSHOT_OVERHEAD = 100
"""Bytes of a snapshot event besides its content, at most."""

EncodedEvent = tuple[EventType, bytes]


class SingleReaderRun:
    """A run that is not stored, and that nobody but its reader knows. Implements ``Readable`` for this reader."""

    def __init__(self, key: RunKey, log: EventLog) -> None:
        self.key = key
        self.log = log
        self._is_discarded = False

    def subscribe(self, after: int = 0, on_close: OnClose | None = None) -> LocalSubscription:
        def close(subscription: Subscription) -> None:
            self.leave()
            if on_close is not None:
                on_close(subscription)

        return LocalSubscription(self, self.log, after, close)

    def leave(self) -> None:
        """Called when the reader has left, and when one has that had sent the same ids at the same time."""
        if not self._is_discarded:
            self._is_discarded = True
            self.log.discard()


def snapshot_run(key: RunKey, events: Sequence[EncodedEvent], flusher: Flusher, memory: LogMemory) -> SingleReaderRun:
    """Return a stored thread as a run that has ended."""
    log = EventLog(key.run_id, memory, flusher)
    for event_type, data in events:
        log.append(event_type, data)
    log.end()
    return SingleReaderRun(key, log)


def snapshot_events(
    run_input: RunAgentInput, caller: Caller, thread: ThreadDelta | None, interrupts: Sequence[Interrupt], now_ms: int
) -> Sequence[EncodedEvent]:
    """Return start, messages, state and end. If a snapshot is too large for an event, the end is PAYLOAD_TOO_LARGE."""
    key = RunKey(caller.owner, run_input.thread_id, run_input.run_id)
    start = start_event(key, run_input.parent_run_id, now_ms)
    try:
        content = content_events(thread)
    except AppError as error:
        failure = run_error(error, caller.request_id).model_copy(update={"timestamp": now_ms})
        return [(EventType.RUN_STARTED, encode(start)), (EventType.RUN_ERROR, encode(failure))]
    end = finish_event(key, interrupts, now_ms)
    return [(EventType.RUN_STARTED, encode(start)), *content, (EventType.RUN_FINISHED, encode(end))]


def content_events(thread: ThreadDelta | None) -> Sequence[EncodedEvent]:
    """Return the snapshots of a thread, made of the stored JSON. Raises ``AppError`` PAYLOAD_TOO_LARGE."""
    messages = [message.data for message in thread.messages] if thread else []
    state = (thread.state if thread else None) or b"{}"
    if max(sum(map(len, messages)) + len(messages), len(state)) > MAX_EVENT_BYTES - SNAPSHOT_OVERHEAD:
        raise AppError(ErrorCode.PAYLOAD_TOO_LARGE, "The thread is too large to be shown in one event.")
    return (
        (EventType.MESSAGES_SNAPSHOT, b'{"type":"MESSAGES_SNAPSHOT","messages":[%b]}' % b",".join(messages)),
        (EventType.STATE_SNAPSHOT, state_event(state)),
    )


def state_event(state: bytes) -> bytes:
    """Return STATE_SNAPSHOT as JSON. A stored state may have numbers that JSON has not, such as ``NaN``."""
    if b"NaN" in state or b"Infinity" in state:
        return encode(StateSnapshotEvent(snapshot=load_state(state)))
    return b'{"type":"STATE_SNAPSHOT","snapshot":%b}' % state


def finish_event(key: RunKey, interrupts: Sequence[Interrupt], now_ms: int) -> RunFinishedEvent:
    outcome: RunFinishedInterruptOutcome | RunFinishedSuccessOutcome = RunFinishedSuccessOutcome()
    if interrupts:
        outcome = RunFinishedInterruptOutcome(interrupts=list(interrupts))
    return RunFinishedEvent(thread_id=key.thread_id, run_id=key.run_id, outcome=outcome, timestamp=now_ms)


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
