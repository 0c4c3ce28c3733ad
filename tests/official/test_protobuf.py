"""The binary encoding against the official one: the same bytes for an event, and the same event for the bytes."""

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from ag_ui.core import BaseEvent, CustomEvent, MessagesSnapshotEvent, StateDeltaEvent, TextMessageStartEvent

from agui_container.protocol.encoder import encode
from agui_container.protocol.wire.protobuf.encoder import encode_frame
from tests.official.judge import Binary, Json, Judge
from tests.protocol.random_events import CLASSES, event
from tests.protocol.samples import SAMPLES
from tests.requirements import requirement
from tests.sockets.process import ServerProcess

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


@requirement("binary.accept")
def test_a_client_tool_is_left_pending_and_continued(judge: Judge, assistant: ServerProcess) -> None:
    confirm = {"name": "confirm", "description": "Ask.", "parameters": {"type": "object"}}
    turns: list[Json] = [{"tools": [confirm]}, {"tools": [confirm], "answer": "yes, do"}]
    ask: dict[str, Any] = {"initialMessages": [{"id": "u", "role": "user", "content": "call confirm {}"}]}
    report = judge.run(assistant.invocations, turns, threadId="binary-tool", binary=True, **ask)
    first, second = report.turns
    assert (first.error, second.error, first.printed, second.printed) == (None, None, [], [])
    assert first.wire["headers"]["content-type"] == "application/vnd.ag-ui.event+proto"
    assert len(first.pending) == 1
    assert "yes, do" in second.text


@requirement("binary.leave")
def test_a_client_that_aborts_can_go_on_in_the_same_thread(judge: Judge, assistant: ServerProcess) -> None:
    turns: list[Json] = [
        {"add": [{"id": "u1", "role": "user", "content": "wait 30"}], "abortAfter": 3},
        {"add": [{"id": "u2", "role": "user", "content": "stream 2"}]},
    ]
    _, second = judge.run(assistant.invocations, turns, threadId="binary-abort", binary=True).turns
    assert second.error is None
    assert second.text == "hello world, hello world, "
