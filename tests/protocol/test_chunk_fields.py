"""Fields of chunks beside their delta, and the split of a delta that is too long for a frame."""

import pytest
from ag_ui.core import BaseEvent, TextMessageContentEvent, TextMessageEndEvent, TextMessageStartEvent

from agui_container.protocol.encoder import encode
from agui_core.expander import CHUNKS, DELTAS, MAX_DELTA
from tests.protocol.chunk_samples import each_kind, expanded, first, kinds
from tests.protocol.grammar_cells import event

START, CONTENT, END = TextMessageStartEvent, TextMessageContentEvent, TextMessageEndEvent
METADATA = {"k": 1}
RAW = {"provider": [None]}


@each_kind
def test_metadata_and_timestamp_go_to_opener_and_content_and_raw_to_the_content_only(kind: type[BaseEvent]) -> None:
    start, content, end = expanded(first(kind, delta="a", metadata=METADATA, raw_event=RAW, timestamp=7))
    assert (start.metadata, start.timestamp, start.raw_event) == (METADATA, 7, None)
    assert (content.metadata, content.timestamp, content.raw_event) == (METADATA, 7, RAW)
    assert (end.metadata, end.timestamp, end.raw_event) == (None, None, None)


@each_kind
def test_cargo_without_delta_makes_an_empty_content(kind: type[BaseEvent]) -> None:
    content = CHUNKS[kind].content
    for cargo in ({"metadata": METADATA}, {"raw_event": RAW}, {"surprise": 1}):
        later = expanded(first(kind), kind(**cargo), flush=False)[1:]
        assert kinds(later) == [content]
        assert later[0].model_dump()["delta"] == ""
    opening = expanded(first(kind, raw_event=RAW), flush=False)
    assert kinds(opening) == [CHUNKS[kind].start, content]


@each_kind
def test_unknown_fields_go_to_the_content(kind: type[BaseEvent]) -> None:
    start, content = expanded(first(kind, delta="a", surprise=1), flush=False)
    assert start.model_extra == {}
    assert content.model_extra == {"surprise": 1}


# --- splitting ---

each_delta = pytest.mark.parametrize("kind", DELTAS, ids=lambda kind: kind.__name__)


@pytest.mark.parametrize("character", ["\x00", "\U0001f600", '"', "é"])
def test_no_character_makes_a_piece_too_large_for_a_frame(character: str) -> None:
    pieces = expanded(CONTENT(message_id="m" * 500, delta=character * MAX_DELTA * 2))
    assert len(pieces) == 2
    assert max(len(encode(piece)) for piece in pieces) < 32_000


@each_delta
def test_a_delta_that_just_fits_is_left_alone(kind: type[BaseEvent]) -> None:
    one = event(kind, delta="x" * MAX_DELTA)
    assert expanded(one)[0] is one
