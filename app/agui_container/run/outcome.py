"""Outcome of a run: its status, its token usage, and the ending that the store gets.

Rule: invalid usage is left out and never fails a run. The ending is made when the run ends, because the objects that it
is made of are released then. Source: AG-UI spec 1.1, events/lifecycle#token-usage.
"""

import logging
from collections.abc import Sequence
from enum import StrEnum

from ag_ui.core import (
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    TokenUsage,
    aggregate_token_usage,
)
from msgspec import Struct, field
from pydantic_core import to_json

from agui_container.ports.records import Change, Ending, RunStatus, ThreadStatus
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
    return None if usage is None else to_json(usage, by_alias=True, exclude_none=True)


class RunResult(Struct, frozen=True):
    """Change of the thread, notices and questions. With ``has_open_calls`` a call of the last message has no result."""

    change: Change = field(default_factory=Change)
    has_open_calls: bool = False
    entries: Sequence[dict[str, object]] = ()


STORED_FACTS = ("requestId", "retryable")
"""Names in the metadata of RUN_ERROR that are stored with the run, so that a client can show them later."""


def make_ending(
    event: RunFinishedEvent | RunErrorEvent, status: RunStatus, ended_at: float, result: RunResult
) -> Ending:
    error = error_json(event) if isinstance(event, RunErrorEvent) else None
    return Ending(status, ended_at, next_turn(event, result), usage_json(event.usage), error, result.change)


def error_json(event: RunErrorEvent) -> bytes:
    facts = {name: fact for name, fact in (event.metadata or {}).items() if name in STORED_FACTS}
    return to_json({"code": event.code, "message": event.message, **({"metadata": facts} if facts else {})})


def next_turn(event: RunFinishedEvent | RunErrorEvent, result: RunResult) -> ThreadStatus | None:
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
