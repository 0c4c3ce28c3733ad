"""How a run ended, in the words of the store.

Rule: everything is taken when the run ends, at once, because nothing of the run is kept afterwards.
"""

from collections.abc import Sequence

from ag_ui.core import RunErrorEvent, RunFinishedEvent, RunFinishedSuccessOutcome
from pydantic_core import to_json

from app.ports.conversation import Change, Ending, ThreadStatus
from app.ports.records import RunStatus


def ending_of(event: RunFinishedEvent | RunErrorEvent, status: RunStatus, ended_at: float, change: Change) -> Ending:
    """What is stored of a run that ended with this event, in Unix seconds."""
    error = None
    if isinstance(event, RunErrorEvent):
        error = to_json({"code": event.code, "message": event.message})
    usage = None if event.usage is None else to_json(event.usage, by_alias=True, exclude_none=True)
    return Ending(status, ended_at, turn_after(event), usage, error, change)


def turn_after(event: RunFinishedEvent | RunErrorEvent) -> ThreadStatus:
    """Whose turn it is."""
    outcome = event.outcome if isinstance(event, RunFinishedEvent) else None
    pending: Sequence[str] | None = None
    if isinstance(outcome, RunFinishedSuccessOutcome):
        pending = outcome.pending_tool_call_ids
    return ThreadStatus.CLIENT_TOOL_TURN if pending else ThreadStatus.USER_TURN
