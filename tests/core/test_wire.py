"""Events to bytes: what the official encoder writes, nothing it would not, and frames that every parser takes."""

import json
from collections.abc import Callable

import pytest
from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    Event,
    EventType,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
)
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter

from app.core.encoder import MAX_EVENT_BYTES, encode
from app.core.errors import AppError, Code, IllegalEvent
from app.core.wire import MERGED_BYTES, Envelope, cursor, frames, sse, sse_refusal
from tests.core.samples import SAMPLES, TRICKY, forged
from tests.engine.doubles import Json

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
    "an id that is no string": lambda: forged(TextMessageStartEvent, message_id=7, role="assistant"),
    "a delta that is no string": lambda: forged(TextMessageContentEvent, message_id="m", delta=None),
    "a role that there is not": lambda: forged(TextMessageStartEvent, message_id="m", role="king"),
    "an object": lambda: CustomEvent(name="n", value=object()),
    "half a surrogate pair": lambda: CustomEvent(name="n", value="\udfff"),
    "half a surrogate pair in a key": lambda: CustomEvent(name="n", value={"\ud800": 1}),
    "bytes that are no text": lambda: CustomEvent(name="n", value=b"\xff"),
    "too much": lambda: CustomEvent(name="n", value="x" * MAX_EVENT_BYTES),
    "itself": recursive,
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_sent_is_an_illegal_event(make: Callable[[], BaseEvent]) -> None:
    with pytest.raises(IllegalEvent):
        encode(make())


# --- SSE ---


def envelope(seq: int, event: BaseEvent) -> Envelope:
    return Envelope("r1", seq, event.type, encode(event))


def test_sse_frames_have_an_id_and_end_in_two_line_feeds() -> None:
    two = [encode(CustomEvent(name="a", value=1)), encode(CustomEvent(name="b", value=2))]
    assert sse(two, 7) == (
        b'id: 7\ndata: {"type":"CUSTOM","name":"a","value":1}\n\n'
        b'id: 8\ndata: {"type":"CUSTOM","name":"b","value":2}\n\n'
    )


def test_a_refusal_has_no_id() -> None:
    assert sse_refusal(b"{}") == b"data: {}\n\n"


@pytest.mark.parametrize(
    ("text", "seq"), [(None, 0), ("", 0), ("0", 0), ("7", 7), ("007", 7), ("9" * 15, int("9" * 15))]
)
def test_a_cursor_is_a_whole_number(text: str | None, seq: int) -> None:
    assert cursor(text) == seq


@pytest.mark.parametrize("text", ["x", "-1", "1.5", " 1", "+1", "1e3", "\N{ARABIC-INDIC DIGIT ONE}", "²", "9" * 16])
def test_any_other_cursor_is_refused(text: str) -> None:
    with pytest.raises(AppError) as refused:
        cursor(text)
    assert refused.value.code is Code.VALIDATION_ERROR
    assert refused.value.message.startswith("after: ")


# --- WebSocket frames ---


def deltas(*texts: str, key: str = "m", start: int = 1) -> list[Envelope]:
    events = [TextMessageContentEvent(message_id=key, delta=text) for text in texts]
    return [envelope(seq, event) for seq, event in enumerate(events, start)]


def read(envelopes: list[Envelope], *, with_seq: bool = False) -> list[Json]:
    return [json.loads(frame) for frame in frames(envelopes, with_seq=with_seq)]


def test_a_frame_is_the_event_itself() -> None:
    event = CustomEvent(name="n", value=TRICKY)
    assert frames([envelope(1, event)], with_seq=False) == [encode(event).decode()]


def test_adjacent_deltas_of_one_message_are_one_frame() -> None:
    assert frames(deltas("a", 'é"', "\n"), with_seq=False) == [
        '{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"aé\\"\\n"}'
    ]


def test_merged_deltas_carry_the_last_number() -> None:
    assert read(deltas("a", "b", start=5), with_seq=True) == [
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "ab", "metadata": {"seq": 6}}
    ]


def test_deltas_of_two_messages_stay_apart() -> None:
    mixed = [*deltas("a"), *deltas("b", key="n", start=2), *deltas("c", start=3)]
    assert [frame["delta"] for frame in read(mixed)] == ["a", "b", "c"]


def test_an_event_between_deltas_keeps_its_place() -> None:
    mixed = [*deltas("a", "b"), envelope(3, CustomEvent(name="n", value=1)), *deltas("c", "d", start=4)]
    assert [frame.get("delta") for frame in read(mixed)] == ["ab", None, "cd"]


@pytest.mark.parametrize("aside", [{"metadata": {"k": 1}}, {"rawEvent": 1}, {"own": 1}])
def test_a_delta_that_says_more_is_not_merged_with_one_that_does_not(aside: Json) -> None:
    more = TextMessageContentEvent.model_validate({"messageId": "m", "delta": "b", **aside})
    mixed = [*deltas("a"), envelope(2, more), *deltas("c", start=3)]
    assert [frame["delta"] for frame in read(mixed)] == ["a", "b", "c"]
    assert read(mixed)[1].items() >= aside.items()


@pytest.mark.parametrize("aside", [{"metadata": {"k": 1}}, {"rawEvent": 1}])
def test_deltas_that_say_the_same_aside_are_not_merged(aside: Json) -> None:
    same = TextMessageContentEvent.model_validate({"messageId": "m", "delta": "a", **aside})
    assert len(read([envelope(1, same), envelope(2, same)])) == 2


def test_argument_deltas_merge_too_and_not_with_text() -> None:
    arguments = [envelope(seq, ToolCallArgsEvent(tool_call_id="m", delta=text)) for seq, text in ((1, "{"), (2, "}"))]
    assert [frame["delta"] for frame in read([*arguments, *deltas("a", start=3)])] == ["{}", "a"]


def test_merging_stops_where_a_frame_would_grow_too_large() -> None:
    texts = ["x" * 5_000 for _ in range(20)]
    merged = frames(deltas(*texts), with_seq=True)
    assert 4 <= len(merged) <= 5
    assert all(len(frame.encode()) <= MERGED_BYTES + 100 for frame in merged)
    assert "".join(json.loads(frame)["delta"] for frame in merged) == "".join(texts)


def test_the_cursor_joins_the_events_own_metadata() -> None:
    event = CustomEvent(name="n", value=1, metadata={"k": 1})
    assert read([envelope(9, event)], with_seq=True)[0]["metadata"] == {"k": 1, "seq": 9}
