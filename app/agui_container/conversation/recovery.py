"""Recovery of a run whose process has died, from its stored events alone.

Rule: the closing events, messages and state are the same as if the process had ended the run itself.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from ag_ui.core import BaseEvent, Event, EventType, Message
from msgspec import Struct
from pydantic import ConfigDict, TypeAdapter
from pydantic_core import from_json

from agui_container.conversation.state import SharedState
from agui_container.protocol.grammar import EVENTS, KINDS
from agui_container.protocol.parser import MESSAGE
from agui_container.protocol.validator import RunSequence
from agui_core.transcript import Transcript

EVENT: TypeAdapter[BaseEvent] = TypeAdapter(Event, config=ConfigDict(defer_build=True))
"""Validator of any event. It is built on first use, because few processes recover a run."""


DELTAS = frozenset(KINDS[event].type for event in EVENTS if KINDS[event].is_delta)
"""Types of events that neither open nor close anything."""


class RecoveredRun(Struct, frozen=True):
    """Result of a run according to its events. ``closers`` close the open entities."""

    closers: Sequence[BaseEvent]
    messages: Sequence[Message]
    order: Sequence[str] | None
    state: bytes | None


def recover_run(events: Iterable[bytes], messages: Iterable[bytes], state: bytes | None, failure: str) -> RecoveredRun:
    """Replay the events of a run. ``failure`` is the error message for subagents that were still open."""
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
        shared.changed_json(),
    )


def advance(sequence: RunSequence, types: Sequence[EventType], events: Sequence[bytes]) -> None:
    """Feed encoded events to a sequence. Deltas are skipped without parsing, because they open and close nothing."""
    for event_type, data in zip(types, events, strict=True):
        if event_type not in DELTAS:
            sequence.feed(EVENT.validate_json(data))
