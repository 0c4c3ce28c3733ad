"""A delta that repeats the one before in all but its text gives what it would give if each were looked at in full."""

from collections.abc import Callable
from itertools import count
from typing import cast

import pytest
from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    EventType,
    MessagesSnapshotEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageStartEvent,
    RunStartedEvent,
    StateSnapshotEvent,
    SubagentStartedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
    UserMessage,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core import chunks
from app.core.deltas import after
from app.core.encoder import encode
from app.core.errors import IllegalEvent
from app.core.pieces import MAX_DELTA
from app.engine import funnel
from app.engine.log_budget import LogBudget
from app.engine.pipeline import EventPipeline
from app.engine.event_log import EventLog
from app.ports import Said
from app.ports.conversation import Change
from tests.core.samples import forged
from tests.engine.doubles import Json, asking
from tests.requirements import requirement

Make = Callable[[], object]


class Loud(TextMessageContentEvent):
    """An agent's own delta, which says more."""

    volume: int = 11


def text(delta: str = "a", key: str = "m1", fields: Json | None = None) -> Make:
    return lambda: TextMessageContentEvent.model_validate({"messageId": key, "delta": delta, **(fields or {})})


def tampered(**fields: object) -> Make:
    """What an agent has changed behind the model's back."""

    def make() -> BaseEvent:
        event = TextMessageContentEvent(message_id="m1", delta="a")
        event.__dict__.update(fields)
        return event

    return make


def without(name: str) -> Make:
    def make() -> BaseEvent:
        event = TextMessageContentEvent(message_id="m1", delta="a")
        del event.__dict__[name]
        return event

    return make


DELTAS: tuple[Make, ...] = (
    text("a"),
    text("b"),
    text('"\\\n\N{GRINNING FACE}'),
    lambda: "a",
    lambda: "b",
    lambda: Said("m1", "a"),
    lambda: Said("m1", "b"),
    lambda: ToolCallArgsEvent(tool_call_id="c1", delta="{"),
    lambda: ReasoningMessageContentEvent(message_id="t1", delta="hm"),
    text(key="m2", fields={"subagentRunId": "s1"}),
    text(key="m3"),
    lambda: TextMessageChunkEvent(message_id="m3", delta="a"),
    text(fields={"metadata": {"a": 1}}),
    text(fields={"x-own": "a"}),
)
OTHERS: tuple[Make, ...] = (
    text(""),
    text("x" * (MAX_DELTA + 1)),
    text(key="m2"),
    text(fields={"timestamp": 1}),
    text(fields={"metadata": {"a": True}}),
    text(fields={"rawEvent": {"a": None}}),
    text(fields={"subagentRunId": "s1"}),
    text(fields={"x-own": 1}),
    text(fields={"subagentRunId": None}),
    tampered(delta="\ud800"),
    tampered(delta=7),
    tampered(delta=["a"]),
    tampered(delta=None),
    tampered(type=EventType.CUSTOM),
    tampered(message_id=7),
    tampered(metadata=[]),
    without("delta"),
    without("timestamp"),
    lambda: Loud(message_id="m1", delta="a"),
    lambda: forged(TextMessageContentEvent, message_id="m1", delta=None),
    lambda: "",
    lambda: "\ud800",
    lambda: "x" * (MAX_DELTA + 1),
    lambda: Said("m1", "x" * (MAX_DELTA + 1)),
    lambda: Said("m2", "a"),
    lambda: Said("m1", ""),
    lambda: Said("m1", "\ud800"),
    lambda: Said("m1", cast("str", b"a")),
    lambda: Said(cast("str", ["m1"]), "a"),
    lambda: 7,
    lambda: TextMessageStartEvent(message_id="m1"),
    lambda: TextMessageStartEvent(message_id="m2", subagent_run_id="s1"),
    lambda: TextMessageEndEvent(message_id="m1"),
    lambda: TextMessageEndEvent(message_id="m2"),
    lambda: ToolCallStartEvent(tool_call_id="c1", tool_call_name="t"),
    lambda: ToolCallEndEvent(tool_call_id="c1"),
    lambda: ReasoningMessageStartEvent(message_id="t1"),
    lambda: TextMessageChunkEvent(message_id="m1", delta="a"),
    lambda: TextMessageChunkEvent(delta="a"),
    lambda: ToolCallChunkEvent(delta="a"),
    lambda: ToolCallChunkEvent(tool_call_id="c2", tool_call_name="t", delta="a"),
    lambda: SubagentStartedEvent(subagent_run_id="s1", name="s"),
    lambda: StateSnapshotEvent(snapshot={"a": 1}),
    lambda: CustomEvent(name="n", value=1),
    lambda: MessagesSnapshotEvent(messages=[UserMessage(id="u1", content="hi")]),
)
STEPS = st.lists(st.one_of(st.sampled_from(DELTAS), st.sampled_from(DELTAS), st.sampled_from(OTHERS)), max_size=30)
OPENED: tuple[Make, ...] = (
    lambda: TextMessageStartEvent(message_id="m1"),
    lambda: SubagentStartedEvent(subagent_run_id="s1", name="s"),
    lambda: TextMessageStartEvent(message_id="m2", subagent_run_id="s1"),
    lambda: ToolCallStartEvent(tool_call_id="c1", tool_call_name="t"),
    lambda: ReasoningMessageStartEvent(message_id="t1"),
)


def begun() -> tuple[EventPipeline, EventLog]:
    """A run with much that is open."""
    log, ids = EventLog("r1", LogBudget(1 << 40, 1 << 40)), count(1)
    made = EventPipeline(asking(), lambda: f"id-{next(ids)}", log)
    made.cross = lambda _: None
    made.write(RunStartedEvent(thread_id="t1", run_id="r1"))
    for make in OPENED:
        made.emit(make())  # type: ignore[arg-type]
    return made, log


def told(steps: list[Make]) -> tuple[list[bytes], list[EventType], list[str], Change | None]:
    """The log, what was refused, and what the thread is left with. As with a tool, a refusal ends nothing."""
    made, log = begun()
    refused = []
    for make in steps:
        try:
            made.emit(make())  # type: ignore[arg-type]
        except (IllegalEvent, TypeError, LookupError, AttributeError) as error:
            refused.append(f"{type(error).__name__}: {error}")
    made.flush()
    made.close(None)
    batch = log.batch(0, len(log))
    return list(batch.data), list(batch.types), refused, made.left("r1").change


def in_full(steps: list[Make]) -> object:
    """The same where no delta is told by the one before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(funnel, "after", lambda *_: None)
        return told(steps)


@requirement("speed.deltas")
@settings(max_examples=300, deadline=None, derandomize=True)
@given(STEPS)
def test_whatever_comes_the_run_is_the_one_that_looks_at_each_delta_in_full(steps: list[Make]) -> None:
    assert told(steps) == in_full(steps)


@requirement("speed.deltas")
@pytest.mark.parametrize("first", range(len(DELTAS)))
def test_so_it_is_behind_each_delta_and_with_anything_between_two(first: int) -> None:
    delta = DELTAS[first]
    for other in (*DELTAS, *OTHERS):
        steps = [delta, delta, other, delta, delta, delta, other, other]
        assert told(steps) == in_full(steps)


def test_what_does_not_end_with_its_text_says_nothing_of_the_next() -> None:
    event = TextMessageContentEvent(message_id="m1", delta="a")
    kind = EventType.TEXT_MESSAGE_CONTENT
    assert after(event, event, encode(event), 1, kind) is not None
    assert after(event, event, b'{"delta":"a","type":"TEXT_MESSAGE_CONTENT"}', 1, kind) is None


@requirement("speed.deltas")
@pytest.mark.parametrize(
    ("make", "encoded"), [(text(), 2), (lambda: "a", 3), (DELTAS[5], 2), (DELTAS[6], 2), (DELTAS[7], 2)]
)
def test_of_deltas_in_a_row_the_first_two_are_looked_at_in_full(
    monkeypatch: pytest.MonkeyPatch, make: Make, encoded: int
) -> None:
    made, log = begun()
    seen: list[BaseEvent] = []

    def counted(event: BaseEvent) -> bytes:
        seen.append(event)
        return encode(event)

    monkeypatch.setattr(chunks, "encode", counted)
    monkeypatch.setattr(funnel, "encode", counted)
    before = len(log)
    for _ in range(10):
        made.emit(make())  # type: ignore[arg-type]
    assert len(seen) == encoded
    assert len(set(log.data(before + encoded - 1, len(log)))) == 1


def test_what_is_tampered_with_between_two_deltas_is_not_what_the_next_one_says() -> None:
    made, log = begun()
    event = TextMessageContentEvent(message_id="m1", delta="a")
    for _ in range(3):
        made.emit(event)
    event.message_id = "m9"
    with pytest.raises(IllegalEvent, match="m9"):
        made.emit(event)
    event.message_id, event.delta = "m1", "b"
    made.emit(event)
    assert [b"m9" in data for data in log.data(0, len(log))] == [False] * len(log)
    assert log.data(len(log) - 1, len(log))[0].endswith(b'"delta":"b"}')


def test_the_message_has_every_text() -> None:
    made, _ = begun()
    for delta in ("one ", "two ", "three ", "four"):
        made.emit(TextMessageContentEvent(message_id="m1", delta=delta))
    change = made.left("r1").change
    assert any(b'"content":"one two three four"' in message.data for message in change.messages)
