"""WebSocket frames: one event each, or adjacent deltas of one stream merged without loss."""

import json
from collections.abc import Sequence

import pytest
from ag_ui.core import BaseEvent, CustomEvent, ReasoningMessageContentEvent, TextMessageContentEvent, ToolCallArgsEvent
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import SerializerFunctionWrapHandler, model_serializer

from agui_container.protocol.encoder import encode
from agui_container.protocol.wire.envelope import Envelope
from agui_container.protocol.wire.ws_frames import DELTA_TYPES, MERGED_BYTES, make_frames
from tests.engine.doubles import Json
from tests.protocol.samples import TRICKY


def envelope(seq: int, event: BaseEvent) -> Envelope:
    return Envelope("r1", seq, event.type, encode(event))


def deltas(*texts: str, key: str = "m", start: int = 1) -> list[Envelope]:
    events = [TextMessageContentEvent(message_id=key, delta=text) for text in texts]
    return [envelope(seq, event) for seq, event in enumerate(events, start)]


def read(envelopes: list[Envelope], *, with_seq: bool = False) -> list[Json]:
    return [json.loads(frame) for frame in make_frames(envelopes, with_seq=with_seq)]


def test_a_frame_is_the_event_itself() -> None:
    event = CustomEvent(name="n", value=TRICKY)
    assert make_frames([envelope(1, event)], with_seq=False) == [encode(event).decode()]


def test_adjacent_deltas_of_one_message_are_one_frame() -> None:
    assert make_frames(deltas("a", 'é"', "\n"), with_seq=False) == [
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


@pytest.mark.parametrize("text", ["x" * 5_000, "token ", "\N{GRINNING FACE}\n", "\x00" * 1_000])
def test_merging_stops_where_a_frame_would_grow_too_large_and_not_before(text: str) -> None:
    texts = [text] * (20 * 5_000 // len(text))
    merged = [frame.encode() for frame in make_frames(deltas(*texts), with_seq=False)]
    assert all(len(frame) <= MERGED_BYTES for frame in merged)
    assert all(len(frame) + len(json.dumps(text)) > MERGED_BYTES for frame in merged[:-1])
    assert "".join(json.loads(frame)["delta"] for frame in merged) == "".join(texts)


@pytest.mark.parametrize("length", [1, 2])
def test_a_frame_may_be_filled_to_the_last_byte(length: int) -> None:
    bare = len(encode(TextMessageContentEvent(message_id="m", delta="")))
    merged = make_frames(deltas("x" * (MERGED_BYTES - bare - 1), "y" * length), with_seq=False)
    assert len(merged) == length


def test_the_cursor_joins_the_events_own_metadata() -> None:
    event = CustomEvent(name="n", value=1, metadata={"k": 1})
    assert read([envelope(9, event)], with_seq=True)[0]["metadata"] == {"k": 1, "seq": 9}


# --- comparison with parsed events ---


def by_parsing(envelopes: Sequence[Envelope], *, with_seq: bool) -> list[Json]:
    """Return the frames by the same rule on parsed events. Fields in another order belong to another class."""
    merged: list[tuple[Json, list[tuple[str, object]] | None]] = []
    for each in envelopes:
        event = json.loads(each.data)
        stream = [field for field in event.items() if field[0] not in {"delta", "timestamp"}]
        mergeable = each.type in DELTA_TYPES and not {"metadata", "rawEvent"} & event.keys()
        before, of = merged[-1] if merged else (event, None)
        together = before | {"delta": before.get("delta", "") + event.get("delta", "")}
        if mergeable and of == stream and len(compact(together)) <= MERGED_BYTES:
            merged[-1] = (together, stream)
        else:
            merged.append((event, stream if mergeable else None))
        if with_seq:
            merged[-1][0]["seq of the last"] = each.seq
    return [with_last_seq(event) for event, _ in merged]


def compact(event: Json) -> bytes:
    event = {name: value for name, value in event.items() if name != "seq of the last"}
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def with_last_seq(event: Json) -> Json:
    seq = event.pop("seq of the last", None)
    return event if seq is None else event | {"metadata": {**(event.get("metadata") or {}), "seq": seq}}


class Extended(TextMessageContentEvent):
    """An agent's own class: it has no plan in the encoder."""


class Backwards(TextMessageContentEvent):
    """One that writes its fields in an order of its own."""

    @model_serializer(mode="wrap")
    def backwards(self, write: SerializerFunctionWrapHandler) -> Json:
        fields = reversed(write(self).items())
        return {name: value for name, value in fields if value is not None}


LOOKS_LIKE_JSON = (
    '","delta":"x"}',
    '"}',
    "\\",
    "a\\",
    '\\"',
    '\\",',
    ',"metadata":{"a":1}',
    '{"delta":"x"}',
    '"rawEvent":',
)
TEXTS = st.one_of(st.sampled_from((*LOOKS_LIKE_JSON, TRICKY, "plain", "é\n")), st.text(min_size=1, max_size=8))
IDS = st.sampled_from(("m", "n", "é", 'a"b', "a\\", ',"delta":"', "metadata", '"rawEvent":'))
ASIDES: st.SearchStrategy[Json] = st.sampled_from(
    (
        *({},) * 6,
        {"metadata": {"k": 1}},
        {"metadata": {}},
        {"rawEvent": {"delta": "x"}},
        {"rawEvent": "x"},
        {"own": "x"},
        {"own": {"delta": "x", "metadata": 1}},
        {"own": [{"delta": "x"}], "other": "y"},
        {"deltas": "x"},
    )
)
OPTIONAL: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {},
    optional={"timestamp": st.integers(0, 3), "subagentRunId": st.sampled_from(("s", 't"'))},
)
KINDS = st.sampled_from(
    (
        *((TextMessageContentEvent, "messageId"), (ToolCallArgsEvent, "toolCallId")),
        *((ReasoningMessageContentEvent, "messageId"), (Extended, "messageId")),
        (Backwards, "messageId"),
    )
)


@st.composite
def streams(draw: st.DrawFn) -> list[Envelope]:
    """Events of a few streams, each several times in a row, with other events between them."""
    events: list[BaseEvent] = []
    for _ in range(draw(st.integers(1, 4))):
        (kind, key), name, aside = draw(KINDS), draw(IDS), draw(ASIDES)
        subagent = draw(OPTIONAL)
        for _ in range(draw(st.integers(1, 4))):
            fields = {key: name, "delta": draw(TEXTS), **aside, **(subagent if draw(st.booleans()) else draw(OPTIONAL))}
            events.append(kind.model_validate(fields))
        if draw(st.booleans()):
            events.append(CustomEvent(name="n", value={"delta": "x"}, metadata=draw(st.sampled_from((None, {"k": 1})))))
    return [envelope(seq, event) for seq, event in enumerate(events, 1)]


@pytest.mark.parametrize("with_seq", [False, True])
@given(envelopes=streams())
@example(envelopes=[envelope(1, TextMessageContentEvent(message_id="m", delta=text)) for text in LOOKS_LIKE_JSON])
def test_frames_are_what_parsing_every_event_would_give(*, envelopes: list[Envelope], with_seq: bool) -> None:
    assert read(envelopes, with_seq=with_seq) == by_parsing(envelopes, with_seq=with_seq)


def test_deltas_as_our_encoder_writes_them_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = [
        TextMessageContentEvent(message_id="m", delta=text, timestamp=at) for at, text in enumerate(LOOKS_LIKE_JSON)
    ]
    envelopes = [*deltas(*LOOKS_LIKE_JSON), *(envelope(seq, event) for seq, event in enumerate(timed, 10))]
    monkeypatch.delattr("agui_container.protocol.wire.ws_frames.json.loads")
    merged = make_frames(envelopes, with_seq=True)
    monkeypatch.undo()
    assert "".join(json.loads(frame)["delta"] for frame in merged) == "".join(LOOKS_LIKE_JSON) * 2
