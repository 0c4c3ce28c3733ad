"""What is owed to the readers of a run whose process has died: told from its stored events alone.

Rule: the same closers, the same messages and the same state as if the process had ended the run itself.
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
"""Built when it is used: few processes recover anything, and all would wait for it at the start."""


DELTAS = frozenset(KINDS[event].type for event in EVENTS if KINDS[event].is_delta)
"""Types of events that neither open nor close anything."""


class RecoveredRun(Struct, frozen=True):
    """A run as its events show it.

    Attributes:
        closers: events that close what is open, in order.
        messages: what the run has brought or changed, in the thread's order.
        order: the ids of all messages of the thread; None where new ones stand at the end.
        state: the shared state as JSON; None where the run has not changed it.
        title: what the conversation would be called.
    """

    closers: Sequence[BaseEvent]
    messages: Sequence[Message]
    order: Sequence[str] | None
    state: bytes | None
    title: str | None


def recover_run(events: Iterable[bytes], messages: Iterable[bytes], state: bytes | None, failure: str) -> RecoveredRun:
    """Go through a run's events.

    Args:
        events: as they were encoded, from the first on.
        messages: the thread's before the run, as JSON.
        state: the thread's before the run, as JSON.
        failure: the message for subagents that were cut off.
    """
    sequence, transcript = RunSequence(), Transcript(map(MESSAGE.validate_json, messages))
    shared = SharedState(None if state is None else from_json(state))
    for data in events:
        event = EVENT.validate_json(data)
        sequence.feed(event)
        transcript.feed(event)
        with suppress(ValueError):
            shared.feed(event)
    told = transcript.messages
    return RecoveredRun(
        sequence.closers(failure),
        transcript.changed(told),
        transcript.order,
        shared.json() if shared.is_new else None,
        make_title(told),
    )


def advance(sequence: RunSequence, types: Sequence[EventType], events: Sequence[bytes]) -> None:
    """Feed encoded events, of these types, to a sequence. Deltas are not parsed, because they leave open what is."""
    for event_type, data in zip(types, events, strict=True):
        if event_type not in DELTAS:
            sequence.feed(EVENT.validate_json(data))
