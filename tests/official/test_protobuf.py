"""The binary encoding against the official one: the same bytes for an event, and the same event for the bytes."""

import json
from collections.abc import Sequence
from random import Random

import pytest
from ag_ui.core import BaseEvent, CustomEvent, MessagesSnapshotEvent, StateDeltaEvent, TextMessageStartEvent

from agui_container.protocol.encoder import encode
from agui_container.protocol.wire.protobuf.encoder import encode_frame
from tests.official.judge import Binary, Judge
from tests.protocol.random_events import CLASSES, event
from tests.protocol.samples import SAMPLES
from tests.requirements import requirement

EACH = 60
"""Arbitrary events of one class."""


def official(judge: Judge, events: Sequence[BaseEvent]) -> tuple[list[bytes], Binary]:
    """Our bytes, and what the official encoder and decoder make of the same events and of our bytes."""
    data = [encode(event) for event in events]
    ours = [encode_frame(each)[4:] for each in data]
    return ours, judge.binary(data, ours)


@requirement("binary.bytes")
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_bytes_are_those_of_the_official_encoder(judge: Judge, kind: type[BaseEvent]) -> None:
    rng = Random(kind.__name__)  # noqa: S311 - the same events every time
    events = [event(rng, kind) for _ in range(EACH)]
    ours, theirs = official(judge, events)
    assert theirs.encoded == ours
    assert theirs.printed == []


@requirement("binary.bytes")
def test_the_official_decoder_gives_the_events_back(judge: Judge) -> None:
    ours, theirs = official(judge, SAMPLES)
    assert theirs.encoded == ours
    assert theirs.decoded == [json.loads(encode(event)) for event in SAMPLES]
    assert theirs.printed == []


def nested(value: object, levels: int) -> object:
    """A value inside so many lists."""
    return nested([value], levels - 1) if levels else value


EXTENDED: dict[str, BaseEvent] = {
    "a field that there is not": TextMessageStartEvent.model_validate({"messageId": "m", "surprise": {"a": None}}),
    "the 1.1 field": MessagesSnapshotEvent.model_validate(
        {"messages": [{"id": "g", "role": "reasoning", "content": "", "encryptedValueType": "x"}]}
    ),
    "another role's field": MessagesSnapshotEvent.model_validate(
        {"messages": [{"id": "u", "role": "user", "content": "hi", "toolCallId": "c", "error": "E"}]}
    ),
    "more in an operation": StateDeltaEvent.model_validate(
        {"delta": [{"op": "remove", "path": "/a", "value": None, "from": "/b", "x": 1}]}
    ),
    "as deep as is accepted": CustomEvent(name="n", value=nested(1, 195)),
    "what JavaScript's objects cannot have": CustomEvent(name="n", value=[{"__proto__": {"a": 1}}]),
}


@requirement("binary.bytes")
@pytest.mark.parametrize("extended", EXTENDED.values(), ids=EXTENDED)
def test_rare_fields_are_encoded_as_officially(judge: Judge, extended: BaseEvent) -> None:
    ours, theirs = official(judge, [extended])
    assert theirs.encoded == ours
