"""Early end of a run whose events the store does not take, or takes too slowly for a shutdown.

Rule: the log is legal and begins with exactly the events that readers have seen. The messages, calls and steps that are
open at that point are closed, and a terminal event follows. The unread events are dropped. At a shutdown the thread
keeps all messages and the state of the run.
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
    return await closing_envelopes(log, last, error.message, log.watermark), ending


async def cut_unstored(log: EventLog, error: RunErrorEvent) -> None:
    """End an ended run with ``error`` after the events that readers have seen. Drop the others, which are not stored.

    RUN_STARTED stays, because every run begins with it.
    """
    started = [] if log.watermark else log.unpersisted().envelopes()[:1]
    closing = await closing_envelopes(log, error, error.message, log.watermark + len(started))
    log.rollback_unpublished()
    log.append_foreign([*started, *closing])


async def closing_envelopes(log: EventLog, last: TerminalEvent, failure: str, after: int) -> list[Envelope]:
    """Return what closes the events that readers have seen, and then ``last``, numbered from ``after`` on.

    ``failure`` is the error message of unfinished subagents.
    """
    sequence, position = RunSequence(), 0
    while position < log.watermark:
        batch = log.batch(position, log.watermark)
        advance(sequence, batch.types, batch.data)
        position += len(batch.data)
        await asyncio.sleep(0)  # let other runs end
    return number_events(log.run_id, after, [*sequence.closers(failure), last])


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
