"""What a run's model calls cost, all of them together: as its end tells it, and as it is stored.

Rule: numbers that make no sense are left out and never harm the run. Source: AG-UI spec 1.1,
events/lifecycle#token-usage.

How a run ended, in the words of the store.

Rule: everything is taken when the run ends, at once, because nothing of the run is kept afterwards.

Where a run is in its life.

Rule: the words are those of the API; all but ``queued`` are also the store's (``RunStatus``).
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

from agui_container.ports import goals as goal
from agui_container.ports.records import Change, Ending, GoalStatus, RunStatus, ThreadStatus
from agui_container.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)


def sum_usage(usage: Sequence[TokenUsage]) -> list[TokenUsage] | None:
    """One entry per provider and model, as AG-UI counts; None where nothing is known or it makes no sense."""
    if not usage:
        return None
    try:
        return aggregate_token_usage(list(usage)) or None
    except (AttributeError, TypeError, ValueError):
        logger.warning("the run's usage cannot be added up and is left out", exc_info=True)
        return None


def usage_json(usage: Sequence[TokenUsage] | None) -> bytes | None:
    """A sum as JSON."""
    return None if usage is None else to_json(usage, by_alias=True, exclude_none=True)


class RunResult(Struct, frozen=True):
    """What a run leaves to its thread.

    Attributes:
        change: what has changed there.
        is_call_owed: whether a call of the assistant's last message has no result.
        has_failed_goals: whether a goal has failed, or is pending where nothing more will come.
    """

    change: Change = field(default_factory=Change)
    is_call_owed: bool = False
    has_failed_goals: bool = False


def make_ending(
    event: RunFinishedEvent | RunErrorEvent, status: RunStatus, ended_at: float, result: RunResult
) -> Ending:
    """What is stored of a run that ended with this event, in Unix seconds."""
    error = None
    if isinstance(event, RunErrorEvent):
        error = to_json({"code": event.code, "message": event.message})
    return Ending(status, ended_at, next_turn(event, result), usage_json(event.usage), error, result.change)


def next_turn(event: RunFinishedEvent | RunErrorEvent, result: RunResult) -> ThreadStatus | None:
    """Whose turn it is; None where nothing has changed, because the run was refused.

    Where nobody is asked for an answer, a call without a result is the client's, whichever run has made it.
    """
    if isinstance(event, RunErrorEvent) and event.code == ErrorCode.VALIDATION_ERROR:
        return None
    outcome = event.outcome if isinstance(event, RunFinishedEvent) else None
    if isinstance(outcome, RunFinishedInterruptOutcome):
        return ThreadStatus.USER_TURN
    if isinstance(outcome, RunFinishedSuccessOutcome) and (outcome.pending_tool_call_ids or result.is_call_owed):
        return ThreadStatus.CLIENT_TOOL_TURN
    return ThreadStatus.GOALS_FAILED if result.has_failed_goals else ThreadStatus.USER_TURN


class GoalStatusTracker:
    """How the goals of a run stand, by its CUSTOM events (docs/goals.md)."""

    __slots__ = ("_failed", "_pending")

    def __init__(self) -> None:
        self._pending: dict[str, None] = {}
        self._failed = False

    @property
    def failed(self) -> bool:
        """Whether one has failed, or is pending where nothing more will come."""
        return self._failed or bool(self._pending)

    def feed(self, event: CustomEvent) -> None:
        """Take note of one event; most say nothing of goals."""
        match event.name, event.value:
            case goal.DECLARED, {"goals": [*goals]}:
                self._pending = dict.fromkeys(filter(None, map(pending, goals)))
            case goal.ACHIEVED, {"type": str(kind)}:
                self._pending.pop(kind, None)
            case goal.FAILED, {"type": str()}:
                self._failed = True


def pending(told: object) -> str | None:
    """The type of a goal that is pending. An agent of one's own may say anything under these names."""
    match told:
        case {"type": str(kind), "status": GoalStatus.PENDING.value}:
            return kind
    return None


class Status(StrEnum):
    """Where a run is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    ERROR = "error"
