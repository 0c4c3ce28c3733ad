"""Outcome of a run: its status, its token usage, the state of its goals, and the ending that the store gets.

Rule: invalid usage is left out and never fails a run. The ending is made when the run ends, because the objects that it
is made of are released then. The status values are those of the API; all but ``queued`` are also the store's
(``RunStatus``). Source: AG-UI spec 1.1, events/lifecycle#token-usage.
"""

import logging
from collections.abc import Sequence
from enum import StrEnum

from ag_ui.core import (
    CustomEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    TokenUsage,
    aggregate_token_usage,
)
from msgspec import Struct, field
from pydantic_core import to_json

from agui_container.ports import goals as goal_events
from agui_container.ports.records import Change, Ending, GoalStatus, RunStatus, ThreadStatus
from agui_container.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)


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
    """Return token usage as JSON, or None if there is none."""
    return None if usage is None else to_json(usage, by_alias=True, exclude_none=True)


class RunResult(Struct, frozen=True):
    """Result of a run for its thread.

    Attributes:
        change: the new messages, state and title.
        has_open_calls: True if a call of the assistant's last message has no result.
        has_failed_goals: True if a goal has failed, or was still pending at the end.
        entries: notices and questions of the run, see ``entries``.
    """

    change: Change = field(default_factory=Change)
    has_open_calls: bool = False
    has_failed_goals: bool = False
    entries: Sequence[dict[str, object]] = ()


STORED_FACTS = ("requestId", "retryable")
"""Names in the metadata of RUN_ERROR that are stored with the run, so that a client can show them later."""


def make_ending(
    event: RunFinishedEvent | RunErrorEvent, status: RunStatus, ended_at: float, result: RunResult
) -> Ending:
    """Return the ending of a run for the store. ``ended_at`` is in Unix seconds."""
    error = error_json(event) if isinstance(event, RunErrorEvent) else None
    return Ending(status, ended_at, next_turn(event, result), usage_json(event.usage), error, result.change)


def error_json(event: RunErrorEvent) -> bytes:
    """Return the error of a run as views and the store have it."""
    facts = {name: fact for name, fact in (event.metadata or {}).items() if name in STORED_FACTS}
    return to_json({"code": event.code, "message": event.message, **({"metadata": facts} if facts else {})})


def next_turn(event: RunFinishedEvent | RunErrorEvent, result: RunResult) -> ThreadStatus | None:
    """Return the new status of the thread, or None if it has not changed because the run was refused.

    Without an interrupt, a call that has no result is the client's to answer, whichever run made it.
    """
    if isinstance(event, RunErrorEvent) and event.code == ErrorCode.VALIDATION_ERROR:
        return None
    outcome = event.outcome if isinstance(event, RunFinishedEvent) else None
    if isinstance(outcome, RunFinishedInterruptOutcome):
        return ThreadStatus.USER_TURN
    if isinstance(outcome, RunFinishedSuccessOutcome) and (outcome.pending_tool_call_ids or result.has_open_calls):
        return ThreadStatus.CLIENT_TOOL_TURN
    return ThreadStatus.GOALS_FAILED if result.has_failed_goals else ThreadStatus.USER_TURN


class GoalStatusTracker:
    """State of a run's goals, from its CUSTOM events (docs/goals.md)."""

    __slots__ = ("_has_failed", "_pending")

    def __init__(self) -> None:
        self._pending: dict[str, None] = {}
        self._has_failed = False

    @property
    def has_failed(self) -> bool:
        """True if a goal has failed, or is still pending. Valid at the end of the run."""
        return self._has_failed or bool(self._pending)

    def feed(self, event: CustomEvent) -> None:
        """Update the goals from one event. Ignore events that do not concern goals."""
        match event.name, event.value:
            case goal_events.DECLARED, {"goals": [*goals]}:
                self._pending = dict.fromkeys(filter(None, map(pending_goal_type, goals)))
            case goal_events.ACHIEVED, {"type": str(kind)}:
                self._pending.pop(kind, None)
            case goal_events.FAILED, {"type": str()}:
                self._has_failed = True


def pending_goal_type(goal: object) -> str | None:
    """Return the type of a pending goal, or None. Custom agents may send any value under the names of goal events."""
    match goal:
        case {"type": str(kind), "status": GoalStatus.PENDING.value}:
            return kind
    return None


class Status(StrEnum):
    """Status of a run."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    ERROR = "error"


class CancelReason(StrEnum):
    """Reason of a cancellation, for metrics: a caller's request, the departure of the last reader, or a new run."""

    CALLER = "caller"
    DISCONNECT = "disconnect"
    NEW_RUN = "new_run"
