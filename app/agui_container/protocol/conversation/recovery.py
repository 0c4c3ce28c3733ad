"""Recovery of a run whose process has died, from its stored events alone.

Rule: the closing events, messages and state are the same as if the process had ended the run itself.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from ag_ui.core import BaseEvent, Event, EventType, Message
from msgspec import Struct
from pydantic import ConfigDict, TypeAdapter
from pydantic_core import from_json

from agui_container.protocol.conversation.merge import MESSAGE, make_title
from agui_container.protocol.conversation.state import SharedState
from agui_container.protocol.conversation.transcript import Transcript
from agui_container.protocol.grammar import EVENTS, KINDS
from agui_container.protocol.validator import RunSequence

EVENT: TypeAdapter[BaseEvent] = TypeAdapter(Event, config=ConfigDict(defer_build=True))
"""Validator of any event. It is built on first use, because few processes recover a run."""


DELTAS = frozenset(KINDS[event].type for event in EVENTS if KINDS[event].is_delta)
"""Types of events that neither open nor close anything."""


class RecoveredRun(Struct, frozen=True):
    """Result of a run according to its events.

    Attributes:
        closers: events that close the open entities, in order.
        messages: messages that the run added or changed, in the thread's order.
        order: ids of all messages of the thread; None if appending the new messages gives the order.
        state: the shared state as JSON; None if the run did not change it.
        title: title for the conversation; None if it has no text of a user.
    """

    closers: Sequence[BaseEvent]
    messages: Sequence[Message]
    order: Sequence[str] | None
    state: bytes | None
    title: str | None


def recover_run(events: Iterable[bytes], messages: Iterable[bytes], state: bytes | None, failure: str) -> RecoveredRun:
    """Replay the events of a run.

    Args:
        events: all stored events of the run as JSON, in order.
        messages: messages of the thread before the run, as JSON.
        state: shared state of the thread before the run, as JSON, or None.
        failure: error message for subagents that were still open.
    """
    sequence, transcript = RunSequence(), Transcript(map(MESSAGE.validate_json, messages))
    shared = SharedState(None if state is None else from_json(state))
    for data in events:
        event = EVENT.validate_json(data)
        sequence.feed(event)
        transcript.feed(event)
        with suppress(ValueError):
            shared.feed(event)
    conversation = transcript.messages
    return RecoveredRun(
        sequence.closers(failure),
        transcript.changed(conversation),
        transcript.order(conversation),
        shared.json() if shared.is_new else None,
        make_title(conversation),
    )


def advance(sequence: RunSequence, types: Sequence[EventType], events: Sequence[bytes]) -> None:
    """Feed encoded events to a sequence. Deltas are skipped without parsing, because they open and close nothing.

    Args:
        sequence: validator of the run's order.
        types: type of each event.
        events: JSON of each event.
    """
    for event_type, data in zip(types, events, strict=True):
        if event_type not in DELTAS:
            sequence.feed(EVENT.validate_json(data))
