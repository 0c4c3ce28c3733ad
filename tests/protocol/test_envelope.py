"""Envelopes: the same bytes as the official encoders, and frames that every parser accepts."""

import pytest
from ag_ui.core import BaseEvent, CustomEvent

from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.wire.envelope import Envelope, parse_cursor
from agui_container.web.formats import sse_frames


def name(event: BaseEvent) -> str:
    return str(event.type.value)


def envelope(seq: int, event: BaseEvent) -> Envelope:
    return Envelope("r1", seq, event.type, encode(event))


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
