"""Expansion of strings and chunks to START, CONTENT and END: streams, missing ids, contradictions, long deltas."""

from itertools import product
from typing import Any

import pytest
from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    BaseEvent,
    CustomEvent,
    MessagesSnapshotEvent,
    RawEvent,
    ReasoningEncryptedValueEvent,
    ReasoningMessageChunkEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    SubagentStartedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)

from agui_container.protocol.errors import IllegalEvent
from agui_container.protocol.expander import CHUNKS
from agui_container.protocol.grammar import EVENTS
from agui_container.protocol.validator import tag_of
from tests.protocol.chunk_samples import OPENERS, each_kind, expanded, expander, first, kinds, text
from tests.protocol.grammar_cells import event

START, CONTENT, END = TextMessageStartEvent, TextMessageContentEvent, TextMessageEndEvent
ENDS_ALL = {RunStartedEvent, RunFinishedEvent, RunErrorEvent, MessagesSnapshotEvent}
ENDS_NONE = {RawEvent, ActivitySnapshotEvent, ActivityDeltaEvent, ReasoningEncryptedValueEvent, SubagentStartedEvent}


# --- strings ---


def test_a_string_is_assistant_text_with_an_id_of_its_own() -> None:
    assert expanded("Hello") == [
        START(message_id="id-1", role="assistant"),
        CONTENT(message_id="id-1", delta="Hello"),
        END(message_id="id-1"),
    ]


def test_strings_in_a_row_are_one_message() -> None:
    assert kinds(expanded("Hello ", "world")) == [START, CONTENT, CONTENT, END]


def test_an_empty_string_is_nothing() -> None:
    assert expanded("") == []
    assert kinds(expanded("a", "", "b")) == [START, CONTENT, CONTENT, END]


def test_an_event_between_strings_ends_the_message() -> None:
    custom = CustomEvent(name="n", value=1)
    events = expanded("a", custom, "b")
    assert kinds(events) == [START, CONTENT, END, CustomEvent, START, CONTENT, END]
    assert [each.message_id for each in events if isinstance(each, START)] == ["id-1", "id-2"]


def test_a_string_continues_a_chunk_of_assistant_text_and_a_chunk_a_string() -> None:
    events = expanded(text("a", "m"), "b", text("c"))
    assert kinds(events) == [START, CONTENT, CONTENT, CONTENT, END]
    assert {each.model_dump()["message_id"] for each in events} == {"m"}


@pytest.mark.parametrize("other", [text("a", "m", role="user"), first(ReasoningMessageChunkEvent, delta="hm")])
def test_a_string_does_not_continue_what_is_not_assistant_text(other: BaseEvent) -> None:
    events = expanded(other, "b")
    assert START(message_id="id-1", role="assistant") in events
    assert len(events) == 6


@pytest.mark.parametrize("item", [None, 1, {"type": "CUSTOM"}, b"a", ["a"], object(), CustomEvent])
def test_an_item_that_is_neither_text_nor_an_event_is_illegal(item: Any) -> None:  # noqa: ANN401 - whatever an agent yields
    with pytest.raises(IllegalEvent, match="neither an AG-UI event nor a string"):
        expander().expand(item)


# --- each kind of chunk ---


def test_every_chunk_class_is_tried() -> None:
    assert set(OPENERS) == set(CHUNKS)


EXPANSIONS: dict[type[BaseEvent], list[BaseEvent]] = {
    TextMessageChunkEvent: [
        START(message_id="k", role="assistant"),
        CONTENT(message_id="k", delta="a"),
        CONTENT(message_id="k", delta="b"),
        END(message_id="k"),
    ],
    ToolCallChunkEvent: [
        ToolCallStartEvent(tool_call_id="k", tool_call_name="tool"),
        ToolCallArgsEvent(tool_call_id="k", delta="a"),
        ToolCallArgsEvent(tool_call_id="k", delta="b"),
        ToolCallEndEvent(tool_call_id="k"),
    ],
    ReasoningMessageChunkEvent: [
        ReasoningMessageStartEvent(message_id="k", role="reasoning"),
        ReasoningMessageContentEvent(message_id="k", delta="a"),
        ReasoningMessageContentEvent(message_id="k", delta="b"),
        ReasoningMessageEndEvent(message_id="k"),
    ],
}


@each_kind
def test_chunks_open_continue_and_end(kind: type[BaseEvent]) -> None:
    assert expanded(first(kind, delta="a"), kind(delta="b")) == EXPANSIONS[kind]
    assert expanded(first(kind, delta="a"), first(kind, delta="b")) == EXPANSIONS[kind]


@each_kind
def test_a_chunk_without_delta_only_opens(kind: type[BaseEvent]) -> None:
    row = CHUNKS[kind]
    assert kinds(expanded(first(kind))) == [row.start, row.end]
    assert expanded(first(kind), kind(), flush=False) == expanded(first(kind), flush=False)


@each_kind
@pytest.mark.parametrize("missing", ["message_id", "tool_call_id", "tool_call_name"])
def test_the_first_chunk_of_a_stream_names_it(kind: type[BaseEvent], missing: str) -> None:
    fields = {name: value for name, value in OPENERS[kind].items() if name != missing}
    if fields == OPENERS[kind]:
        assert expander().expand(kind(**fields))
    else:
        with pytest.raises(IllegalEvent, match=missing):
            expander().expand(kind(**fields, delta="a"))


@each_kind
def test_another_id_is_another_stream(kind: type[BaseEvent]) -> None:
    row = CHUNKS[kind]
    other = first(kind, **{row.id_field: "other"})
    assert kinds(expanded(first(kind, delta="a"), other)) == [row.start, row.content, row.end, row.start, row.end]


@pytest.mark.parametrize(("one", "other"), [pair for pair in product(OPENERS, OPENERS) if pair[0] is not pair[1]])
def test_another_kind_ends_the_stream_of_its_lane(one: type[BaseEvent], other: type[BaseEvent]) -> None:
    assert kinds(expanded(first(one), first(other), flush=False)) == [
        CHUNKS[one].start,
        CHUNKS[one].end,
        CHUNKS[other].start,
    ]


DISAGREEMENTS = [
    (TextMessageChunkEvent, {"role": "user"}),
    (TextMessageChunkEvent, {"name": "n"}),
    (ToolCallChunkEvent, {"tool_call_name": "other"}),
    (ToolCallChunkEvent, {"parent_message_id": "m"}),
    (TextMessageChunkEvent, {"subagent_run_id": "s", "message_id": "k"}),
    (ToolCallChunkEvent, {"subagent_run_id": "s", "tool_call_id": "k"}),
    (ReasoningMessageChunkEvent, {"subagent_run_id": "s", "message_id": "k"}),
]


@pytest.mark.parametrize(("kind", "fields"), DISAGREEMENTS)
def test_a_later_chunk_may_not_change_what_the_first_said(kind: type[BaseEvent], fields: dict[str, str]) -> None:
    opened = expander()
    opened.expand(first(kind))
    with pytest.raises(IllegalEvent, match=r"changes its|is tagged"):
        opened.expand(kind(**fields))


def test_a_later_chunk_may_repeat_what_the_first_said() -> None:
    opening = text("a", "m", role="user", name="n")
    assert kinds(expanded(opening, text("b", role="user", name="n"))) == [START, CONTENT, CONTENT, END]
    assert kinds(expanded(text("a", "m"), text("b", role="assistant"))) == [START, CONTENT, CONTENT, END]


def test_every_field_that_an_opener_fixes_has_a_disagreement() -> None:
    tried = {(kind, name) for kind, fields in DISAGREEMENTS for name in fields}
    assert {(kind, name) for kind, row in CHUNKS.items() for name in row.opener_fields} <= tried


# --- chunk streams ---


def test_each_owner_has_a_lane_of_its_own() -> None:
    events = expanded(text("a", "m", "s"), text("b", "n"), text("c", owner="s"), text("d"))
    assert kinds(events) == [START, CONTENT, START, CONTENT, CONTENT, CONTENT, END, END]
    assert {(each.message_id, tag_of(each)) for each in events if isinstance(each, START | CONTENT | END)} == {
        ("m", "s"),
        ("n", None),
    }


def test_an_id_finds_its_lane_without_a_tag() -> None:
    events = expanded(text("a", "m", "s"), text("b", "n"), text("c", "m"), flush=False)
    assert events[-1] == CONTENT(message_id="m", delta="c", subagent_run_id="s")


def test_a_chunk_without_id_and_tag_continues_the_only_stream_of_its_kind() -> None:
    events = expanded(text("a", "m", "s"), first(ReasoningMessageChunkEvent), text("c"), flush=False)
    assert events[-1] == CONTENT(message_id="m", delta="c", subagent_run_id="s")


def test_a_chunk_that_could_continue_two_streams_is_illegal() -> None:
    opened = expander()
    for owner in ("s", "z"):
        opened.expand(text("a", owner, owner))
    with pytest.raises(IllegalEvent, match="2 open text message streams"):
        opened.expand(text("b"))


@pytest.mark.parametrize("owner", [None, "s"])
@pytest.mark.parametrize("kind", sorted(EVENTS, key=str), ids=lambda kind: kind.__name__)
def test_each_event_ends_the_streams_it_should(kind: type[BaseEvent], owner: str | None) -> None:
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
