"""The events that begin and end a run, as the engine makes them.

Source: AG-UI spec 1.1, events/lifecycle.
"""

from ag_ui.core import PROTOCOL_VERSION, CustomEvent, RunFinishedCancelledOutcome, RunFinishedEvent, RunStartedEvent

from app.core.errors import AppError, Code
from app.ports import RunContext
from app.ports.conversation import Lapse

AGENT_FAILED = AppError(Code.AGENT_ERROR, "The agent failed; the server's log has the cause.")
ALREADY_RUN = AppError(Code.THREAD_BUSY, "A run of this id has run on this thread.")


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


def warned(lapse: Lapse) -> CustomEvent:
    """CUSTOM for what the store could not do; the run goes on without it."""
    return CustomEvent(name=lapse.name, value={"message": lapse.message})
