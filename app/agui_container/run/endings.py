"""First and last events of a run, the errors that the engine ends runs with, and the ending that the store gets.

Rules:

- The ids and the outcome come from the engine, not from the agent.
- Invalid usage is left out and never fails a run.
- The ending is made when the run ends, because the objects that it is made of are released then.

Source: AG-UI spec 1.1, events/lifecycle.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from itertools import count
from typing import TypeVar

from ag_ui.core import (
    PROTOCOL_VERSION,
    BaseEvent,
    CustomEvent,
    Interrupt,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    TokenUsage,
    aggregate_token_usage,
)
from msgspec import Struct, field, structs
from pydantic_core import to_json

from agui_container.ports import RunContext, ToolError
from agui_container.ports.records import Change, Ending, RunKey, RunStatus, StoreWarning, ThreadNote, ThreadStatus
from agui_container.protocol.encoder import encode
from agui_container.protocol.envelope import Envelope
from agui_container.protocol.errors import AppError, ErrorCode, clip_message
from agui_container.protocol.grammar import KINDS

logger = logging.getLogger(__name__)

TerminalEvent = RunFinishedEvent | RunErrorEvent

T = TypeVar("T", bound=BaseEvent)

EventFields = Mapping[str, object]
"""Values for an event's fields, by their Python names."""

AGENT_FAILED = AppError(ErrorCode.AGENT_ERROR, "The agent failed; the server's log has the cause.")
RUN_TIMED_OUT = AppError(ErrorCode.RUN_TIMEOUT, "The run took longer than it may.")


def describe_failure(error: BaseException) -> AppError:
    """Return what clients read of an exception of an agent. Its text stays in the log, unless it is for clients."""
    if isinstance(error, ToolError):
        return AppError(ErrorCode.AGENT_ERROR, clip_message(str(error)))
    return error if isinstance(error, AppError) else AGENT_FAILED


def start_failed_error() -> AppError:
    """Make a new error each time, because a raised exception refers to the frames of its traceback."""
    return AppError(ErrorCode.INTERNAL_ERROR, "The run could not begin; the server's log has the cause.")


def start_event(key: RunKey, parent_run_id: str | None, now_ms: int) -> RunStartedEvent:
    return RunStartedEvent(
        thread_id=key.thread_id,
        run_id=key.run_id,
        parent_run_id=parent_run_id,
        protocol_version=PROTOCOL_VERSION,
        timestamp=now_ms,
    )


def complete_finish_event(
    event: RunFinishedEvent | None, ctx: RunContext, pending: Callable[[], list[str]]
) -> tuple[RunFinishedEvent, RunStatus, EventFields]:
    """Return RUN_FINISHED, by default a plain one, the run's status, and the fields to set on the event."""
    event = event or finished_event(ctx)
    outcome, status = event.outcome, RunStatus.FINISHED
    if isinstance(outcome, RunFinishedInterruptOutcome):
        status = RunStatus.INTERRUPTED
    elif isinstance(outcome, RunFinishedCancelledOutcome):
        status = RunStatus.CANCELLED
    else:
        outcome = RunFinishedSuccessOutcome(pending_tool_call_ids=pending() or None)
    return event, status, {"thread_id": ctx.thread_id, "run_id": ctx.run_id, "outcome": outcome}


def with_totals(event: T, usage: list[TokenUsage], now_ms: int, fields: EventFields | None) -> T:
    update = {"usage": sum_usage(usage), "timestamp": event.timestamp or now_ms, **(fields or {})}
    return event.model_copy(update=update)


def finished_event(
    ctx: RunContext, outcome: RunFinishedCancelledOutcome | RunFinishedInterruptOutcome | None = None
) -> RunFinishedEvent:
    return RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=outcome)


def ends_turn(event: TerminalEvent) -> bool:
    """Return True if a run was cancelled, or has failed for another reason than a refused input or the store."""
    if isinstance(event, RunErrorEvent):
        return event.code not in {ErrorCode.VALIDATION_ERROR, ErrorCode.STORE_UNAVAILABLE}
    return isinstance(event.outcome, RunFinishedCancelledOutcome)


def own_questions(event: TerminalEvent, stored: Collection[str]) -> Sequence[Interrupt]:
    """Return the interrupts with which a run ends, without those that the agent has stored itself."""
    outcome = event.outcome if isinstance(event, RunFinishedEvent) else None
    asked = outcome.interrupts if isinstance(outcome, RunFinishedInterruptOutcome) else ()
    return [interrupt for interrupt in asked if interrupt.id not in stored]


def warning_event(warning: StoreWarning) -> CustomEvent:
    return CustomEvent(name=warning.name, value={"message": warning.message})


def number_events(run_id: str, after: int, events: list[BaseEvent]) -> list[Envelope]:
    return [
        Envelope(run_id, seq, KINDS[type(event)].type, encode(event))
        for seq, event in zip(count(after + 1), events, strict=False)
    ]


# --- the stored ending ------------------------------------------------------------------------------------------------


def sum_usage(usage: Sequence[TokenUsage]) -> list[TokenUsage] | None:
    """Return the total usage, one entry per provider and model, or None if nothing is known or it is invalid."""
    if not usage:
        return None
    try:
        return aggregate_token_usage(list(usage)) or None
    except (AttributeError, TypeError, ValueError):
        logger.warning("token usage invalid, left out of the run", exc_info=True)
        return None


def usage_json(usage: Sequence[TokenUsage] | None) -> bytes | None:
    return None if usage is None else to_json(usage, by_alias=True, exclude_none=True)


class RunResult(Struct, frozen=True):
    """Change of the thread, notices and questions. With ``has_open_calls`` a call of the last message has no result."""

    change: Change = field(default_factory=Change)
    has_open_calls: bool = False
    entries: Sequence[dict[str, object]] = ()


STORED_FACTS = ("requestId", "retryable")
"""Names in the metadata of RUN_ERROR that are stored with the run, so that a client can show them later."""


def make_ending(
    event: TerminalEvent, status: RunStatus, ended_at: float, result: RunResult, notes: Sequence[ThreadNote]
) -> Ending:
    error = error_json(event) if isinstance(event, RunErrorEvent) else None
    change = structs.replace(result.change, notes=notes) if notes else result.change
    return Ending(status, ended_at, next_turn(event, result), usage_json(event.usage), error, change)


def error_json(event: RunErrorEvent) -> bytes:
    facts = {name: fact for name, fact in (event.metadata or {}).items() if name in STORED_FACTS}
    return to_json({"code": event.code, "message": event.message, **({"metadata": facts} if facts else {})})


def next_turn(event: TerminalEvent, result: RunResult) -> ThreadStatus | None:
    """Return None after a refused run. Without an interrupt, a call without a result is the client's to answer."""
    if isinstance(event, RunErrorEvent) and event.code == ErrorCode.VALIDATION_ERROR:
        return None
    outcome = event.outcome if isinstance(event, RunFinishedEvent) else None
    if isinstance(outcome, RunFinishedInterruptOutcome):
        return ThreadStatus.USER_TURN
    if isinstance(outcome, RunFinishedSuccessOutcome) and (outcome.pending_tool_call_ids or result.has_open_calls):
        return ThreadStatus.CLIENT_TOOL_TURN
    return ThreadStatus.USER_TURN


class CancelReason(StrEnum):
    """Reason of a cancellation, for metrics: a caller's request, the departure of the last reader, or a new run."""

    CALLER = "caller"
    DISCONNECT = "disconnect"
    NEW_RUN = "new_run"
