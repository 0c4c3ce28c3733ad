"""How a run ended, in the words of the store.

Rule: everything is taken when the run ends, at once, because nothing of the run is kept afterwards.
"""

from ag_ui.core import (
    CustomEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
)
from msgspec import Struct, field
from pydantic_core import to_json

from app.core.errors import Code
from app.engine.usage import stored
from app.ports import goal
from app.ports.conversation import Change, Ending, GoalStatus, ThreadStatus
from app.ports.records import RunStatus


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


def ending_of(event: RunFinishedEvent | RunErrorEvent, status: RunStatus, ended_at: float, result: RunResult) -> Ending:
    """What is stored of a run that ended with this event, in Unix seconds."""
    error = None
    if isinstance(event, RunErrorEvent):
        error = to_json({"code": event.code, "message": event.message})
    return Ending(status, ended_at, turn_after(event, result), stored(event.usage), error, result.change)


def turn_after(event: RunFinishedEvent | RunErrorEvent, result: RunResult) -> ThreadStatus | None:
    """Whose turn it is; None where nothing has changed, because the run was refused.

    Where nobody is asked for an answer, a call without a result is the client's, whichever run has made it.
    """
    if isinstance(event, RunErrorEvent) and event.code == Code.VALIDATION_ERROR:
        return None
    outcome = event.outcome if isinstance(event, RunFinishedEvent) else None
    if isinstance(outcome, RunFinishedInterruptOutcome):
        return ThreadStatus.USER_TURN
    if isinstance(outcome, RunFinishedSuccessOutcome) and (outcome.pending_tool_call_ids or result.is_call_owed):
        return ThreadStatus.CLIENT_TOOL_TURN
    return ThreadStatus.GOALS_FAILED if result.has_failed_goals else ThreadStatus.USER_TURN


class GoalWatch:
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
