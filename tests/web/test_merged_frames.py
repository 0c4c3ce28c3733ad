"""Frames of events: the ids and cursors of SSE, and those of a WebSocket, where adjacent deltas merge without loss."""

import json
from collections.abc import Sequence

import pytest
from ag_ui.core import BaseEvent, CustomEvent, ReasoningMessageContentEvent, TextMessageContentEvent, ToolCallArgsEvent
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import SerializerFunctionWrapHandler, model_serializer

from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.wire.envelope import Envelope, parse_cursor
from agui_container.web.formats import sse_frames
from agui_container.web.websocket_output import DELTA_TYPES, MERGED_BYTES, make_frames
from tests.engine.doubles import Json
from tests.protocol.samples import TRICKY


def envelope(seq: int, event: BaseEvent) -> Envelope:
    return Envelope("r1", seq, event.type, encode(event))


def deltas(*texts: str, key: str = "m", start: int = 1) -> list[Envelope]:
    events = [TextMessageContentEvent(message_id=key, delta=text) for text in texts]
    return [envelope(seq, event) for seq, event in enumerate(events, start)]


def read(envelopes: list[Envelope], *, with_seq: bool = False) -> list[Json]:
    return [json.loads(frame) for frame in make_frames(envelopes, with_seq=with_seq)]


@pytest.mark.parametrize("text", ["x" * 5_000, "token ", "\N{GRINNING FACE}\n", "\x00" * 1_000])
def test_merging_stops_where_a_frame_would_grow_too_large_and_not_before(text: str) -> None:
    texts = [text] * (20 * 5_000 // len(text))
    merged = [frame.encode() for frame in make_frames(deltas(*texts), with_seq=False)]
    assert all(len(frame) <= MERGED_BYTES for frame in merged)
    assert all(len(frame) + len(json.dumps(text)) > MERGED_BYTES for frame in merged[:-1])
    assert "".join(json.loads(frame)["delta"] for frame in merged) == "".join(texts)


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


def name(event: BaseEvent) -> str:
    return str(event.type.value)


def test_sse_frames_have_an_id_and_end_in_two_line_feeds() -> None:
    two = [encode(CustomEvent(name="a", value=1)), encode(CustomEvent(name="b", value=2))]
    assert sse_frames(two, 7) == (
        b'id: 7\ndata: {"type":"CUSTOM","name":"a","value":1}\n\n'
        b'id: 8\ndata: {"type":"CUSTOM","name":"b","value":2}\n\n'
    )


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
