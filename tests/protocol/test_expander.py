"""Expansion of strings and chunks to START, CONTENT and END: streams, missing ids, contradictions, long deltas."""

from itertools import count

import pytest
from ag_ui import core as ag

from agui_container.ports import Item
from agui_container.protocol.encoder import encode
from agui_container.protocol.grammar import EVENTS
from agui_container.protocol.validator import tag_of
from agui_core.expander import CHUNKS, DELTAS, MAX_DELTA, Expander
from tests.protocol.grammar_cells import event

START, CONTENT, END = ag.TextMessageStartEvent, ag.TextMessageContentEvent, ag.TextMessageEndEvent
ENDS_ALL = {ag.RunStartedEvent, ag.RunFinishedEvent, ag.RunErrorEvent, ag.MessagesSnapshotEvent}
ENDS_NONE = {
    ag.RawEvent,
    ag.ActivitySnapshotEvent,
    ag.ActivityDeltaEvent,
    ag.ReasoningEncryptedValueEvent,
    ag.SubagentStartedEvent,
}
OPENERS: dict[type[ag.BaseEvent], dict[str, str]] = {
    ag.TextMessageChunkEvent: {"message_id": "k"},
    ag.ToolCallChunkEvent: {"tool_call_id": "k", "tool_call_name": "tool"},
    ag.ReasoningMessageChunkEvent: {"message_id": "k"},
}
each_kind = pytest.mark.parametrize("kind", OPENERS, ids=lambda kind: kind.__name__)


def expanded(*items: Item, flush: bool = True) -> list[ag.BaseEvent]:
    numbers = count(1)
    made = Expander(lambda: f"id-{next(numbers)}")
    events = [event for item in items for event in made.expand(item)]
    return [*events, *made.flush()] if flush else events


def first(kind: type[ag.BaseEvent], **fields: object) -> ag.BaseEvent:
    """Return the first chunk of a stream."""
    return kind(**{**OPENERS[kind], **fields})


def text(delta: str | None = None, key: str | None = None, owner: str | None = None, **fields: object) -> ag.BaseEvent:
    return ag.TextMessageChunkEvent(message_id=key, delta=delta, subagent_run_id=owner, **fields)


def kinds(events: list[ag.BaseEvent]) -> list[type[ag.BaseEvent]]:
    return [type(each) for each in events]


def test_a_string_continues_a_chunk_of_assistant_text_and_a_chunk_a_string() -> None:
    events = expanded(text("a", "m"), "b", text("c"))
    assert kinds(events) == [START, CONTENT, CONTENT, CONTENT, END]
    assert {each.model_dump()["message_id"] for each in events} == {"m"}


@pytest.mark.parametrize("other", [text("a", "m", role="user"), first(ag.ReasoningMessageChunkEvent, delta="hm")])
def test_a_string_does_not_continue_what_is_not_assistant_text(other: ag.BaseEvent) -> None:
    events = expanded(other, "b")
    assert START(message_id="id-1", role="assistant") in events
    assert len(events) == 6


EXPANSIONS: dict[type[ag.BaseEvent], list[ag.BaseEvent]] = {
    ag.TextMessageChunkEvent: [
        START(message_id="k", role="assistant"),
        CONTENT(message_id="k", delta="a"),
        CONTENT(message_id="k", delta="b"),
        END(message_id="k"),
    ],
    ag.ToolCallChunkEvent: [
        ag.ToolCallStartEvent(tool_call_id="k", tool_call_name="tool"),
        ag.ToolCallArgsEvent(tool_call_id="k", delta="a"),
        ag.ToolCallArgsEvent(tool_call_id="k", delta="b"),
        ag.ToolCallEndEvent(tool_call_id="k"),
    ],
    ag.ReasoningMessageChunkEvent: [
        ag.ReasoningMessageStartEvent(message_id="k", role="reasoning"),
        ag.ReasoningMessageContentEvent(message_id="k", delta="a"),
        ag.ReasoningMessageContentEvent(message_id="k", delta="b"),
        ag.ReasoningMessageEndEvent(message_id="k"),
    ],
}


@each_kind
def test_chunks_open_continue_and_end(kind: type[ag.BaseEvent]) -> None:
    assert expanded(first(kind, delta="a"), kind(delta="b")) == EXPANSIONS[kind]
    assert expanded(first(kind, delta="a"), first(kind, delta="b")) == EXPANSIONS[kind]


@each_kind
def test_a_chunk_without_delta_only_opens(kind: type[ag.BaseEvent]) -> None:
    row = CHUNKS[kind]
    assert kinds(expanded(first(kind))) == [row.start, row.end]
    assert expanded(first(kind), kind(), flush=False) == expanded(first(kind), flush=False)


@pytest.mark.parametrize("owner", [None, "s"])
@pytest.mark.parametrize("kind", sorted(EVENTS, key=str), ids=lambda kind: kind.__name__)
def test_each_event_ends_the_streams_it_should(kind: type[ag.BaseEvent], owner: str | None) -> None:
    tag = {"subagent_run_id": owner} if owner and "subagent_run_id" in kind.model_fields else {}
    one = event(kind, **tag)
    ended = {None: ["parent"], "s": ["child"]}.get(tag_of(one), [])
    if kind in ENDS_ALL:
        ended = ["parent", "child"]
    elif kind in ENDS_NONE:
        ended = []
    *before, last = expanded(text("a", "parent"), text("a", "child", "s"), one, flush=False)
    assert [each.message_id for each in before if isinstance(each, END)] == ended
    assert last == one


@pytest.mark.parametrize("character", ["\x00", "\U0001f600", '"', "é"])
def test_no_character_makes_a_piece_too_large_for_a_frame(character: str) -> None:
    pieces = expanded(ag.TextMessageContentEvent(message_id="m" * 500, delta=character * MAX_DELTA * 2))
    assert len(pieces) == 2
    assert max(len(encode(piece)) for piece in pieces) < 32_000


@pytest.mark.parametrize("kind", DELTAS, ids=lambda kind: kind.__name__)
def test_a_delta_that_just_fits_is_left_alone(kind: type[ag.BaseEvent]) -> None:
    one = event(kind, delta="x" * MAX_DELTA)
    assert expanded(one)[0] is one
