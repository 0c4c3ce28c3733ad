"""Expansion of strings and chunks to START, CONTENT and END: streams, missing ids, contradictions, long deltas."""

from itertools import product

import pytest
from ag_ui import core as ag

from agui_container.protocol.grammar import EVENTS
from agui_container.protocol.validator import tag_of
from agui_core.expander import CHUNKS, IllegalEvent
from tests.protocol.chunk_samples import OPENERS, each_kind, expanded, expander, first, kinds, text
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


# --- strings ---


def test_a_string_continues_a_chunk_of_assistant_text_and_a_chunk_a_string() -> None:
    events = expanded(text("a", "m"), "b", text("c"))
    assert kinds(events) == [START, CONTENT, CONTENT, CONTENT, END]
    assert {each.model_dump()["message_id"] for each in events} == {"m"}


@pytest.mark.parametrize("other", [text("a", "m", role="user"), first(ag.ReasoningMessageChunkEvent, delta="hm")])
def test_a_string_does_not_continue_what_is_not_assistant_text(other: ag.BaseEvent) -> None:
    events = expanded(other, "b")
    assert START(message_id="id-1", role="assistant") in events
    assert len(events) == 6


# --- each kind of chunk ---


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


@each_kind
@pytest.mark.parametrize("missing", ["message_id", "tool_call_id", "tool_call_name"])
def test_the_first_chunk_of_a_stream_names_it(kind: type[ag.BaseEvent], missing: str) -> None:
    fields = {name: value for name, value in OPENERS[kind].items() if name != missing}
    if fields == OPENERS[kind]:
        assert expander().expand(kind(**fields))
    else:
        with pytest.raises(IllegalEvent, match=missing):
            expander().expand(kind(**fields, delta="a"))


@each_kind
def test_another_id_is_another_stream(kind: type[ag.BaseEvent]) -> None:
    row = CHUNKS[kind]
    other = first(kind, **{row.id_field: "other"})
    assert kinds(expanded(first(kind, delta="a"), other)) == [row.start, row.content, row.end, row.start, row.end]


@pytest.mark.parametrize(("one", "other"), [pair for pair in product(OPENERS, OPENERS) if pair[0] is not pair[1]])
def test_another_kind_ends_the_stream_of_its_lane(one: type[ag.BaseEvent], other: type[ag.BaseEvent]) -> None:
    assert kinds(expanded(first(one), first(other), flush=False)) == [
        CHUNKS[one].start,
        CHUNKS[one].end,
        CHUNKS[other].start,
    ]


DISAGREEMENTS = [
    (ag.TextMessageChunkEvent, {"role": "user"}),
    (ag.TextMessageChunkEvent, {"name": "n"}),
    (ag.ToolCallChunkEvent, {"tool_call_name": "other"}),
    (ag.ToolCallChunkEvent, {"parent_message_id": "m"}),
    (ag.TextMessageChunkEvent, {"subagent_run_id": "s", "message_id": "k"}),
    (ag.ToolCallChunkEvent, {"subagent_run_id": "s", "tool_call_id": "k"}),
    (ag.ReasoningMessageChunkEvent, {"subagent_run_id": "s", "message_id": "k"}),
]


@pytest.mark.parametrize(("kind", "fields"), DISAGREEMENTS)
def test_a_later_chunk_may_not_change_what_the_first_said(kind: type[ag.BaseEvent], fields: dict[str, str]) -> None:
    opened = expander()
    opened.expand(first(kind))
    with pytest.raises(IllegalEvent, match=r"changes its|is tagged"):
        opened.expand(kind(**fields))


# --- chunk streams ---


def test_each_owner_has_a_lane_of_its_own() -> None:
    events = expanded(text("a", "m", "s"), text("b", "n"), text("c", owner="s"), text("d"))
    assert kinds(events) == [START, CONTENT, START, CONTENT, CONTENT, CONTENT, END, END]
    assert {(each.message_id, tag_of(each)) for each in events if isinstance(each, START | CONTENT | END)} == {
        ("m", "s"),
        ("n", None),
    }


def test_a_chunk_that_could_continue_two_streams_is_illegal() -> None:
    opened = expander()
    for owner in ("s", "z"):
        opened.expand(text("a", owner, owner))
    with pytest.raises(IllegalEvent, match="2 open text message streams"):
        opened.expand(text("b"))


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
