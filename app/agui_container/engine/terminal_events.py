"""The events that begin and end a run, as the engine makes them.

Source: AG-UI spec 1.1, events/lifecycle.
"""

from collections.abc import Callable, Mapping
from itertools import count

from ag_ui.core import (
    PROTOCOL_VERSION,
    BaseEvent,
    CustomEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    TokenUsage,
)

from agui_container.engine.outcome import Status, sum_usage
from agui_container.ports import RunContext
from agui_container.ports.records import StoreWarning
from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.grammar import KINDS
from agui_container.protocol.wire.envelope import Envelope

End = RunFinishedEvent | RunErrorEvent

Fields = Mapping[str, object]
"""Of an event, by their names in Python."""

AGENT_FAILED = AppError(ErrorCode.AGENT_ERROR, "The agent failed; the server's log has the cause.")
TOOK_TOO_LONG = AppError(ErrorCode.RUN_TIMEOUT, "The run took longer than it may.")
ALREADY_RUN = AppError(ErrorCode.THREAD_BUSY, "A run of this id has run on this thread.")


def start_failed_error() -> AppError:
    """What a run gets that could not begin. A new one each time: one that is raised holds the frames of it."""
    return AppError(ErrorCode.INTERNAL_ERROR, "The run could not begin; the server's log has the cause.")


def start_event(ctx: RunContext, parent_run_id: str | None, now_ms: int) -> RunStartedEvent:
    """RUN_STARTED, with the version that is spoken."""
    return RunStartedEvent(
        thread_id=ctx.thread_id,
        run_id=ctx.run_id,
        parent_run_id=parent_run_id,
        protocol_version=PROTOCOL_VERSION,
        timestamp=now_ms,
    )


def finish_event(
    event: RunFinishedEvent | None, ctx: RunContext, pending: Callable[[], list[str]]
) -> tuple[RunFinishedEvent, Status, Fields]:
    """An agent's RUN_FINISHED, or one where it said nothing of its end, and what that is to say: ids and outcome.

    ``pending`` gives the calls left unanswered.
    """
    event = event or RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id)
    outcome, status = event.outcome, Status.FINISHED
    if isinstance(outcome, RunFinishedInterruptOutcome):
        status = Status.INTERRUPTED
    elif isinstance(outcome, RunFinishedCancelledOutcome):
        status = Status.CANCELLED
    else:
        outcome = RunFinishedSuccessOutcome(pending_tool_call_ids=pending() or None)
    return event, status, {"thread_id": ctx.thread_id, "run_id": ctx.run_id, "outcome": outcome}


def with_totals(event: End, usage: list[TokenUsage], now_ms: int, said: Fields | None) -> End:
    """The terminal event with what it is to say besides: what the run's model calls cost, its time, and ``spoken_text``."""
    update = {"usage": sum_usage(usage), "timestamp": event.timestamp or now_ms, **(said or {})}
    return event.model_copy(update=update)


def cancel_event(ctx: RunContext) -> RunFinishedEvent:
    """RUN_FINISHED of a run that was cancelled."""
    outcome = RunFinishedCancelledOutcome()
    return RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=outcome)


def warning_event(warning: StoreWarning) -> CustomEvent:
    """CUSTOM for what the store could not do; the run goes on without it."""
    return CustomEvent(name=warning.name, value={"message": warning.message})


def number_events(run_id: str, after: int, events: list[BaseEvent]) -> list[Envelope]:
    """Events as the envelopes that follow."""
    return [
        Envelope(run_id, seq, KINDS[type(event)].type, encode(event))
        for seq, event in zip(count(after + 1), events, strict=False)
    ]
