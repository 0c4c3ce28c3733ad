"""The events that begin and end a run, as the engine makes them.

Source: AG-UI spec 1.1, events/lifecycle.
"""

from ag_ui.core import PROTOCOL_VERSION, RunFinishedCancelledOutcome, RunFinishedEvent, RunStartedEvent

from app.ports import RunContext


def started(ctx: RunContext, parent_run_id: str | None, now_ms: int) -> RunStartedEvent:
    """RUN_STARTED, with the version that is spoken."""
    return RunStartedEvent(
        thread_id=ctx.thread_id,
        run_id=ctx.run_id,
        parent_run_id=parent_run_id,
        protocol_version=PROTOCOL_VERSION,
        timestamp=now_ms,
    )


def finished(ctx: RunContext) -> RunFinishedEvent:
    """RUN_FINISHED of an agent that said nothing of its end."""
    return RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id)


def cancelled(ctx: RunContext) -> RunFinishedEvent:
    """RUN_FINISHED of a run that was cancelled."""
    outcome = RunFinishedCancelledOutcome()
    return RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=outcome)
