"""First and last events of a run, and the errors that the engine ends runs with.

Rule: the ids and the outcome come from the engine, not from the agent. Source: AG-UI spec 1.1, events/lifecycle.
"""

from collections.abc import Callable, Mapping, Sequence
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
)

from agui_container.engine.outcome import Status, sum_usage
from agui_container.ports import RunContext
from agui_container.ports.records import RunKey, StoreWarning
from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.grammar import KINDS
from agui_container.protocol.wire.envelope import Envelope

TerminalEvent = RunFinishedEvent | RunErrorEvent

T = TypeVar("T", bound=BaseEvent)

EventFields = Mapping[str, object]
"""Values for an event's fields, by their Python names."""

AGENT_FAILED = AppError(ErrorCode.AGENT_ERROR, "The agent failed; the server's log has the cause.")
RUN_TIMED_OUT = AppError(ErrorCode.RUN_TIMEOUT, "The run took longer than it may.")
RUN_ID_USED = AppError(ErrorCode.THREAD_BUSY, "A run with this id has already run on this thread.")


def start_failed_error() -> AppError:
    """Return the error of a run that could not begin.

    A new instance each time, because a raised exception keeps a reference to the frames of its traceback.
    """
    return AppError(ErrorCode.INTERNAL_ERROR, "The run could not begin; the server's log has the cause.")


def start_event(key: RunKey, parent_run_id: str | None, now_ms: int) -> RunStartedEvent:
    """Return RUN_STARTED with the protocol version. ``now_ms`` is in Unix milliseconds."""
    return RunStartedEvent(
        thread_id=key.thread_id,
        run_id=key.run_id,
        parent_run_id=parent_run_id,
        protocol_version=PROTOCOL_VERSION,
        timestamp=now_ms,
    )


def complete_finish_event(
    event: RunFinishedEvent | None, ctx: RunContext, pending: Callable[[], list[str]]
) -> tuple[RunFinishedEvent, Status, EventFields]:
    """Return RUN_FINISHED, the status of the run, and the fields to set on the event: ids and outcome.

    Without an event of the agent, a plain one is made. ``pending`` returns the ids of the calls that have no result.
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


def with_totals(event: T, usage: list[TokenUsage], now_ms: int, fields: EventFields | None) -> T:
    """Return the terminal event with the total usage of the run, its timestamp and further fields."""
    update = {"usage": sum_usage(usage), "timestamp": event.timestamp or now_ms, **(fields or {})}
    return event.model_copy(update=update)


def cancelled_event(ctx: RunContext) -> RunFinishedEvent:
    """Return RUN_FINISHED with the outcome ``cancelled``."""
    outcome = RunFinishedCancelledOutcome()
    return RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=outcome)


def interrupted_event(ctx: RunContext, interrupts: Sequence[Interrupt]) -> RunFinishedEvent:
    """Return RUN_FINISHED with the outcome ``interrupt``."""
    outcome = RunFinishedInterruptOutcome(interrupts=list(interrupts))
    return RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=outcome)


def warning_event(warning: StoreWarning) -> CustomEvent:
    """Return the CUSTOM event for a problem of the store that did not fail the run."""
    return CustomEvent(name=warning.name, value={"message": warning.message})


def number_events(run_id: str, after: int, events: list[BaseEvent]) -> list[Envelope]:
    """Return events as envelopes that follow ``seq`` ``after``."""
    return [
        Envelope(run_id, seq, KINDS[type(event)].type, encode(event))
        for seq, event in zip(count(after + 1), events, strict=False)
    ]
