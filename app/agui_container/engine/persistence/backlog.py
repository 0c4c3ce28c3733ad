"""Early end of a run at shutdown, if its events come faster than the store writes them.

Rule: the stored log is legal and begins with exactly the events that readers have seen. The messages, calls and steps
that are open at that point are closed, and a terminal event follows. The unread events are dropped. The thread keeps
all messages and the state of the run.
"""

import asyncio

from ag_ui.core import RunErrorEvent, RunFinishedCancelledOutcome, RunFinishedEvent
from msgspec import structs
from pydantic_core import to_json

from agui_container.engine.log.event_log import EventLog
from agui_container.engine.terminal_events import TerminalEvent, number_events
from agui_container.ports.records import Ending, RunStatus
from agui_container.protocol.conversation.recovery import EVENT, advance
from agui_container.protocol.errors import AppError
from agui_container.protocol.validator import RunSequence
from agui_container.protocol.wire.envelope import Envelope


async def early_end(log: EventLog, ending: Ending, error: AppError) -> tuple[list[Envelope], Ending]:
    """Return the last envelopes of an ended run and its ending, without the events that readers have not seen.

    A run that failed or was cancelled keeps its own terminal event. A run that succeeded or was interrupted ends with
    ``error``, because its readers missed some of its events.
    """
    last = terminal_event(log, error)
    if isinstance(last, RunErrorEvent):
        error_json = to_json({"code": last.code, "message": last.message})
        ending = structs.replace(ending, status=RunStatus.ERROR, error=error_json)
    sequence, after = RunSequence(), 0
    while after < log.watermark:
        batch = log.batch(after, log.watermark)
        advance(sequence, batch.types, batch.data)
        after += len(batch.data)
        await asyncio.sleep(0)  # let other runs end
    closers = sequence.closers(error.message)
    return number_events(log.run_id, log.watermark, [*closers, last]), ending


def terminal_event(log: EventLog, error: AppError) -> TerminalEvent:
    """Return the run's own terminal event if it is still true without the dropped events, else RUN_ERROR."""
    own = EVENT.validate_json(log.batch(len(log) - 1, len(log)).data[0])
    if isinstance(own, RunErrorEvent):
        return own
    if not isinstance(own, RunFinishedEvent):
        return RunErrorEvent(code=error.code, message=error.message)
    if isinstance(own.outcome, RunFinishedCancelledOutcome):
        return own
    return RunErrorEvent(code=error.code, message=error.message, usage=own.usage, timestamp=own.timestamp)
