"""The fast path for deltas has the same results as the normal path."""

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
from hypothesis import given
from hypothesis import strategies as st

from agui_container.engine.log.event_log import EventLog, Flusher
from agui_container.engine.run import pipeline
from agui_container.engine.run.pipeline import EventPipeline
from agui_container.ports import MessageText
from agui_container.ports.records import Change
from agui_container.protocol.conversation.transcript import Transcript
from agui_container.protocol.delta_template import DeltaTemplate
from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import IllegalEvent
from agui_container.protocol.expander import MAX_DELTA
from tests.engine.doubles import Json, asking, log_memory
from tests.protocol.samples import without_validation
from tests.requirements import requirement

Make = Callable[[], object]


class DeltaWithVolume(TextMessageContentEvent):
    """A delta of an agent with a field of its own."""

    volume: int = 11


def text(delta: str = "a", key: str = "m1", fields: Json | None = None) -> Make:
    return lambda: TextMessageContentEvent.model_validate({"messageId": key, "delta": delta, **(fields or {})})


def event_with_fields(**fields: object) -> Make:
    """Return a factory of events whose fields were changed without pydantic's validation."""

    def make() -> BaseEvent:
        event = TextMessageContentEvent(message_id="m1", delta="a")
        event.__dict__.update(fields)
        return event

    return make


def event_without_field(name: str) -> Make:
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
    lambda: MessageText("m1", "a"),
    lambda: MessageText("m1", "b"),
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
    event_with_fields(delta="\ud800"),
    event_with_fields(delta=7),
    event_with_fields(delta=["a"]),
    event_with_fields(delta=None),
    event_with_fields(type=EventType.CUSTOM),
    event_with_fields(message_id=7),
    event_with_fields(metadata=[]),
    event_without_field("delta"),
    event_without_field("timestamp"),
    lambda: DeltaWithVolume(message_id="m1", delta="a"),
    lambda: without_validation(TextMessageContentEvent, message_id="m1", delta=None),
    lambda: "",
    lambda: "\ud800",
    lambda: "x" * (MAX_DELTA + 1),
    lambda: MessageText("m1", "x" * (MAX_DELTA + 1)),
    lambda: MessageText("m2", "a"),
    lambda: MessageText("m1", ""),
    lambda: MessageText("m1", "\ud800"),
    lambda: MessageText("m1", cast("str", b"a")),
    lambda: MessageText(cast("str", ["m1"]), "a"),
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


def begin_pipeline() -> tuple[EventPipeline, EventLog]:
    """Return the pipeline of a run with many open entities."""
    log, ids = EventLog("r1", log_memory(1 << 40, 1 << 40), Flusher()), count(1)
    made = EventPipeline(lambda: f"id-{next(ids)}", log)
    made.start_from(asking())
    made.write(RunStartedEvent(thread_id="t1", run_id="r1"))
    for make in OPENED:
        made.submit(make())  # type: ignore[arg-type]
    return made, log


def outcome(steps: list[Make]) -> tuple[list[bytes], list[EventType], list[str], Change | None]:
    """Return the log, the refused events and the change of the thread. A refusal does not end the run."""
    made, log = begin_pipeline()
    refused = []
    for make in steps:
        try:
            made.submit(make())  # type: ignore[arg-type]
        except (IllegalEvent, TypeError, LookupError, AttributeError) as error:
            refused.append(f"{type(error).__name__}: {error}")
    made.flush_chunks()
    made.close(None)
    log.flush()
    batch = log.batch(0, len(log))
    return list(batch.data), list(batch.types), refused, made.result("r1").change


def outcome_on_normal_path(steps: list[Make]) -> object:
    """Return the outcome without the fast path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeltaTemplate, "of", lambda *_: None)
        return outcome(steps)


@requirement("speed.deltas")
@given(STEPS)
async def test_a_run_is_the_same_with_and_without_the_fast_path(steps: list[Make]) -> None:
    assert outcome(steps) == outcome_on_normal_path(steps)


@requirement("speed.deltas")
@pytest.mark.parametrize("first", range(len(DELTAS)))
async def test_it_is_the_same_behind_each_delta_and_with_anything_between_two(first: int) -> None:
    delta = DELTAS[first]
    for other in (*DELTAS, *OTHERS):
        steps = [delta, delta, other, delta, delta, delta, other, other]
        assert outcome(steps) == outcome_on_normal_path(steps)


def test_a_delta_whose_json_does_not_end_with_its_text_is_no_template() -> None:
    event, transcript = TextMessageContentEvent(message_id="m1", delta="a"), Transcript()
    for each in (TextMessageStartEvent(message_id="m1"), event):
        transcript.feed(each)
    assert DeltaTemplate.of(event, event, encode(event), transcript) is not None
    assert DeltaTemplate.of(event, event, b'{"delta":"a","type":"TEXT_MESSAGE_CONTENT"}', transcript) is None


def test_a_delta_of_a_message_that_the_transcript_does_not_have_is_no_template() -> None:
    event = TextMessageContentEvent(message_id="m1", delta="a")
    assert DeltaTemplate.of(event, event, encode(event), Transcript()) is None


@requirement("speed.deltas")
@pytest.mark.parametrize(
    ("make", "encoded"), [(text(), 1), (lambda: "a", 2), (DELTAS[5], 1), (DELTAS[6], 1), (DELTAS[7], 1)]
)
async def test_of_consecutive_deltas_only_the_first_takes_the_normal_path(
    monkeypatch: pytest.MonkeyPatch, make: Make, encoded: int
) -> None:
    made, log = begin_pipeline()
    seen: list[BaseEvent] = []

    def counted(event: BaseEvent) -> tuple[BaseEvent, bytes]:
        seen.append(event)
        return event, encode(event)

    monkeypatch.setattr(pipeline, "encode_whole", counted)
    before = len(log)
    for _ in range(10):
        made.submit(make())  # type: ignore[arg-type]
    assert len(seen) == encoded
    log.flush()
    assert len(set(log.batch(before + encoded - 1, len(log)).data)) == 1


async def test_a_delta_that_was_changed_after_it_was_accepted_is_validated_again() -> None:
    made, log = begin_pipeline()
    event = TextMessageContentEvent(message_id="m1", delta="a")
    for _ in range(3):
        made.submit(event)
    event.message_id = "m9"
    with pytest.raises(IllegalEvent, match="m9"):
        made.submit(event)
    event.message_id, event.delta = "m1", "b"
    made.submit(event)
    log.flush()
    data = log.batch(0, len(log)).data
    assert [b"m9" in each for each in data] == [False] * len(log)
    assert data[-1].endswith(b'"delta":"b"}')


async def test_the_message_has_every_text() -> None:
    made, _ = begin_pipeline()
    for delta in ("one ", "two ", "three ", "four"):
        made.submit(TextMessageContentEvent(message_id="m1", delta=delta))
    change = made.result("r1").change
    assert any(b'"content":"one two three four"' in message.data for message in change.messages)
