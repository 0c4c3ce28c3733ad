"""Snapshot of a stored thread, for a client that connects to it without new messages.

Rule: no agent is called and nothing is stored. The history is sent as snapshots, and pending interrupts as the outcome
of the run. The run is complete when its reader begins, and nothing else can find it. Source: AG-UI spec 1.1,
basic/threads.
"""

from collections.abc import Sequence

from ag_ui.core import (
    EventType,
    Interrupt,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    StateSnapshotEvent,
)

from agui_container.conversation.state import load_state
from agui_container.ports import Caller
from agui_container.ports.records import RunKey, ThreadDelta
from agui_container.protocol.encoder import MAX_EVENT_BYTES, encode
from agui_container.protocol.errors import AppError, ErrorCode, run_error
from agui_container.run.endings import start_event
from agui_container.run.event_log import EventLog, Flusher, LogMemory, SingleReaderRun

SNAPSHOT_OVERHEAD = 100
"""Bytes of a snapshot event besides its content, at most."""

RUN_PROPS = ("skill",)
"""Names in ``forwardedProps`` that ask for a run of the agent even without messages."""

EncodedEvent = tuple[EventType, bytes]


def is_connect(run_input: RunAgentInput) -> bool:
    if run_input.messages or run_input.resume:
        return False
    forwarded = run_input.forwarded_props
    return not (isinstance(forwarded, dict) and any(forwarded.get(name) for name in RUN_PROPS))


def snapshot_run(key: RunKey, events: Sequence[EncodedEvent], flusher: Flusher, memory: LogMemory) -> SingleReaderRun:
    """Return a stored thread as a run that has ended."""
    log = EventLog(key.run_id, memory, flusher)
    for event_type, data in events:
        log.append(event_type, data)
    log.end()
    return SingleReaderRun(key, log)


def snapshot_events(
    run_input: RunAgentInput, caller: Caller, thread: ThreadDelta | None, interrupts: Sequence[Interrupt], now_ms: int
) -> Sequence[EncodedEvent]:
    """Return start, messages, state and end. If a snapshot is too large for an event, the end is PAYLOAD_TOO_LARGE."""
    key = RunKey(caller.owner, run_input.thread_id, run_input.run_id)
    start = start_event(key, run_input.parent_run_id, now_ms)
    try:
        content = content_events(thread)
    except AppError as error:
        failure = run_error(error, caller.request_id).model_copy(update={"timestamp": now_ms})
        return [(EventType.RUN_STARTED, encode(start)), (EventType.RUN_ERROR, encode(failure))]
    end = finish_event(key, interrupts, now_ms)
    return [(EventType.RUN_STARTED, encode(start)), *content, (EventType.RUN_FINISHED, encode(end))]


def content_events(thread: ThreadDelta | None) -> Sequence[EncodedEvent]:
    """Return the snapshots of a thread, made of the stored JSON. Raises ``AppError`` PAYLOAD_TOO_LARGE."""
    messages = [message.data for message in thread.messages] if thread else []
    state = (thread.state if thread else None) or b"{}"
    if max(sum(map(len, messages)) + len(messages), len(state)) > MAX_EVENT_BYTES - SNAPSHOT_OVERHEAD:
        raise AppError(ErrorCode.PAYLOAD_TOO_LARGE, "The thread is too large to be shown in one event.")
    return (
        (EventType.MESSAGES_SNAPSHOT, b'{"type":"MESSAGES_SNAPSHOT","messages":[%b]}' % b",".join(messages)),
        (EventType.STATE_SNAPSHOT, state_event(state)),
    )


def state_event(state: bytes) -> bytes:
    """Return STATE_SNAPSHOT as JSON. A stored state may have numbers that JSON has not, such as ``NaN``."""
    if b"NaN" in state or b"Infinity" in state:
        return encode(StateSnapshotEvent(snapshot=load_state(state)))
    return b'{"type":"STATE_SNAPSHOT","snapshot":%b}' % state


def finish_event(key: RunKey, interrupts: Sequence[Interrupt], now_ms: int) -> RunFinishedEvent:
    outcome: RunFinishedInterruptOutcome | RunFinishedSuccessOutcome = RunFinishedSuccessOutcome()
    if interrupts:
        outcome = RunFinishedInterruptOutcome(interrupts=list(interrupts))
    return RunFinishedEvent(thread_id=key.thread_id, run_id=key.run_id, outcome=outcome, timestamp=now_ms)
