"""Envelopes: the same bytes as the official encoders, and frames that every parser accepts."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    Event,
    EventType,
    MessagesSnapshotEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
)
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter

from agui_container.protocol.encoder import MAX_EVENT_BYTES, encode
from agui_container.protocol.errors import AppError, ErrorCode, IllegalEvent
from agui_container.protocol.wire.envelope import Envelope, parse_cursor
from agui_container.protocol.wire.protobuf.encoder import EVENT, POOL, encode_frame
from agui_container.protocol.wire.sse_frames import sse_error_frame, sse_frames
from tests.protocol.protobuf_decoder import event, kind, messages
from tests.protocol.samples import SAMPLES, TRICKY, without_validation
from tests.requirements import requirement

OFFICIAL: TypeAdapter[BaseEvent] = TypeAdapter(Event)


def name(event: BaseEvent) -> str:
    return str(event.type.value)


def test_the_samples_are_all_types() -> None:
    assert {event.type for event in SAMPLES} == set(EventType)
    assert len(set(EventType)) == 31


@pytest.mark.parametrize("event", SAMPLES, ids=name)
def test_bytes_are_those_of_the_official_encoder(event: BaseEvent) -> None:
    assert b"data: %b\n\n" % encode(event) == EventEncoder().encode(event).encode()


@pytest.mark.parametrize("event", SAMPLES, ids=name)
def test_bytes_with_unknown_fields_are_those_of_the_official_encoder(event: BaseEvent) -> None:
    extended = type(event).model_validate({**event.model_dump(by_alias=True), "x-own": {"none": None, "t": TRICKY}})
    data = encode(extended)
    assert b"data: %b\n\n" % data == EventEncoder().encode(extended).encode()
    assert json.loads(data)["x-own"] == {"none": None, "t": TRICKY}


@pytest.mark.parametrize("event", SAMPLES, ids=name)
def test_bytes_are_read_back_as_the_same_event(event: BaseEvent) -> None:
    assert OFFICIAL.validate_json(encode(event)) == event


@pytest.mark.parametrize("event", SAMPLES, ids=name)
def test_bytes_hold_no_line_break(event: BaseEvent) -> None:
    assert not {b"\n"[0], b"\r"[0]} & set(encode(event))


def test_an_absent_field_is_left_out_and_a_null_in_content_is_kept() -> None:
    assert encode(StateSnapshotEvent(snapshot={"a": None})) == b'{"type":"STATE_SNAPSHOT","snapshot":{"a":null}}'


def test_a_subclass_is_encoded_with_its_own_fields() -> None:
    class Mine(CustomEvent):
        flavour: str = "sweet"

    assert json.loads(encode(Mine(name="n", value=1)))["flavour"] == "sweet"


# --- refusals ---


def recursive() -> BaseEvent:
    value: list[object] = []
    value.append(value)
    return CustomEvent(name="n", value=value)


REFUSED: dict[str, Callable[[], BaseEvent]] = {
    "an id that is no string": lambda: without_validation(TextMessageStartEvent, message_id=7, role="assistant"),
    "a delta that is no string": lambda: without_validation(TextMessageContentEvent, message_id="m", delta=None),
    "a role that there is not": lambda: without_validation(TextMessageStartEvent, message_id="m", role="king"),
    "an object": lambda: CustomEvent(name="n", value=object()),
    "half a surrogate pair": lambda: CustomEvent(name="n", value="\udfff"),
    "half a surrogate pair in a key": lambda: CustomEvent(name="n", value={"\ud800": 1}),
    "bytes that are no text": lambda: CustomEvent(name="n", value=b"\xff"),
    "too much": lambda: CustomEvent(name="n", value="x" * MAX_EVENT_BYTES),
    "itself": recursive,
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_an_event_that_cannot_be_sent_is_illegal(make: Callable[[], BaseEvent]) -> None:
    with pytest.raises(IllegalEvent):
        encode(make())


# --- SSE ---


def envelope(seq: int, event: BaseEvent) -> Envelope:
    return Envelope("r1", seq, event.type, encode(event))


def test_sse_frames_have_an_id_and_end_in_two_line_feeds() -> None:
    two = [encode(CustomEvent(name="a", value=1)), encode(CustomEvent(name="b", value=2))]
    assert sse_frames(two, 7) == (
        b'id: 7\ndata: {"type":"CUSTOM","name":"a","value":1}\n\n'
        b'id: 8\ndata: {"type":"CUSTOM","name":"b","value":2}\n\n'
    )


@pytest.mark.parametrize("first", [1, 9, 99, 10**15])
def test_frames_are_the_same_alone_and_together_whatever_their_numbers(first: int) -> None:
    three = [b'{"a":1}', b"{}", b"[%d]"]
    assert sse_frames(three, first) == b"".join(sse_frames([data], first + at) for at, data in enumerate(three))


def test_a_refusal_has_no_id() -> None:
    assert sse_error_frame(b"{}") == b"data: {}\n\n"


@pytest.mark.parametrize(
    ("text", "seq"), [(None, 0), ("", 0), ("0", 0), ("7", 7), ("007", 7), ("9" * 15, int("9" * 15))]
)
def test_a_cursor_is_a_whole_number(text: str | None, seq: int) -> None:
    assert parse_cursor(text) == seq


@pytest.mark.parametrize("text", ["x", "-1", "1.5", " 1", "+1", "1e3", "\N{ARABIC-INDIC DIGIT ONE}", "²", "9" * 16])
def test_any_other_cursor_is_refused(text: str) -> None:
    with pytest.raises(AppError) as refused:
        parse_cursor(text)
    assert refused.value.code is ErrorCode.VALIDATION_ERROR
    assert refused.value.message.startswith("after: ")


# --- protobuf ---------------------------------------------------------------------------------------------------------


SCHEMA = Path(__file__).parents[2] / "app" / "agui_container" / "protocol" / "wire" / "protobuf" / "agui.proto"


@requirement("binary.schema")
def test_the_compiled_schema_is_that_of_the_text(tmp_path: Path) -> None:
    compiled = tmp_path / "agui.binpb"
    options = [f"-I{SCHEMA.parent}", f"--descriptor_set_out={compiled}", SCHEMA.name]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *options], check=True)
    assert compiled.read_bytes() == SCHEMA.with_suffix(".binpb").read_bytes()


@requirement("binary.schema")
def test_every_event_type_has_its_message_and_its_number() -> None:
    types = POOL.FindEnumTypeByName("ag_ui.EventType").values_by_name
    assert {field.name.upper() for field in EVENT.fields} == set(types) == {each.value for each in EventType}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.type.value)
def test_a_frame_is_a_length_and_one_event(sample: CustomEvent) -> None:
    assert [kind(message) for message in messages(encode_frame(encode(sample)))] == [sample.type.value]


def test_array_indexes_come_first_as_in_javascript() -> None:
    keys = ["b", "10", "a", "2", "01", "0", "-1", "4294967294", "4294967295", "\u0663", ""]
    [message] = messages(encode_frame(encode(CustomEvent(name="n", value=dict.fromkeys(keys)))))
    members = [member.key for member in event(message).value.object_value.members]
    assert members == ["0", "2", "10", "4294967294", "b", "a", "01", "-1", "4294967295", "\u0663", ""]


def test_a_key_that_would_be_a_prototype_in_javascript_is_left_out() -> None:
    [message] = messages(
        encode_frame(encode(CustomEvent(name="n", value={"__proto__": {"a": 1}, "b": {"__proto__": 2}})))
    )
    [member] = event(message).value.object_value.members
    assert (member.key, [*member.value.object_value.members]) == ("b", [])


def test_a_value_that_is_not_of_the_fields_type_stays_behind() -> None:
    user = {"id": "u", "role": "user", "content": "x", "error": 5, "toolCalls": "no", "activityContent": []}
    [message] = messages(encode_frame(encode(MessagesSnapshotEvent.model_validate({"messages": [user]}))))
    [sent] = event(message).messages
    assert sorted(field.name for field, _ in sent.ListFields()) == ["content", "id", "role"]
