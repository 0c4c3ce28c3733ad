"""The fast path for deltas has the same results as the normal path."""

from collections.abc import Callable
from itertools import count
from typing import cast

import pytest
from ag_ui import core as ag
from hypothesis import given
from hypothesis import strategies as st

from agui_container.ports import MessageText
from agui_container.ports.records import Change
from agui_container.run.event_log import EventLog, Flusher
from agui_container.run.pipeline import DeltaTemplate, EventPipeline
from agui_core.expander import MAX_DELTA, IllegalEvent
from tests.engine.doubles import Json, asking, log_memory
from tests.protocol.samples import without_validation

Make = Callable[[], object]


class DeltaWithVolume(ag.TextMessageContentEvent):
    """A delta of an agent with a field of its own."""

    volume: int = 11


def text(delta: str = "a", key: str = "m1", fields: Json | None = None) -> Make:
    return lambda: ag.TextMessageContentEvent.model_validate({"messageId": key, "delta": delta, **(fields or {})})


def event_with_fields(**fields: object) -> Make:
    """Return a factory of events whose fields were changed without pydantic's validation."""

    def make() -> ag.BaseEvent:
        event = ag.TextMessageContentEvent(message_id="m1", delta="a")
        event.__dict__.update(fields)
        return event

    return make


def event_without_field(name: str) -> Make:
    def make() -> ag.BaseEvent:
        event = ag.TextMessageContentEvent(message_id="m1", delta="a")
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
    lambda: ag.ToolCallArgsEvent(tool_call_id="c1", delta="{"),
    lambda: ag.ReasoningMessageContentEvent(message_id="t1", delta="hm"),
    text(key="m2", fields={"subagentRunId": "s1"}),
    text(key="m3"),
    lambda: ag.TextMessageChunkEvent(message_id="m3", delta="a"),
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
    event_with_fields(type=ag.EventType.CUSTOM),
    event_with_fields(message_id=7),
    event_with_fields(metadata=[]),
    event_without_field("delta"),
    event_without_field("timestamp"),
    lambda: DeltaWithVolume(message_id="m1", delta="a"),
    lambda: without_validation(ag.TextMessageContentEvent, message_id="m1", delta=None),
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
    lambda: ag.TextMessageStartEvent(message_id="m1"),
    lambda: ag.TextMessageStartEvent(message_id="m2", subagent_run_id="s1"),
    lambda: ag.TextMessageEndEvent(message_id="m1"),
    lambda: ag.TextMessageEndEvent(message_id="m2"),
    lambda: ag.ToolCallStartEvent(tool_call_id="c1", tool_call_name="t"),
    lambda: ag.ToolCallEndEvent(tool_call_id="c1"),
    lambda: ag.ReasoningMessageStartEvent(message_id="t1"),
    lambda: ag.TextMessageChunkEvent(message_id="m1", delta="a"),
    lambda: ag.TextMessageChunkEvent(delta="a"),
    lambda: ag.ToolCallChunkEvent(delta="a"),
    lambda: ag.ToolCallChunkEvent(tool_call_id="c2", tool_call_name="t", delta="a"),
    lambda: ag.SubagentStartedEvent(subagent_run_id="s1", name="s"),
    lambda: ag.StateSnapshotEvent(snapshot={"a": 1}),
    lambda: ag.CustomEvent(name="n", value=1),
    lambda: ag.MessagesSnapshotEvent(messages=[ag.UserMessage(id="u1", content="hi")]),
)
STEPS = st.lists(st.one_of(st.sampled_from(DELTAS), st.sampled_from(DELTAS), st.sampled_from(OTHERS)), max_size=30)
OPENED: tuple[Make, ...] = (
    lambda: ag.TextMessageStartEvent(message_id="m1"),
    lambda: ag.SubagentStartedEvent(subagent_run_id="s1", name="s"),
    lambda: ag.TextMessageStartEvent(message_id="m2", subagent_run_id="s1"),
    lambda: ag.ToolCallStartEvent(tool_call_id="c1", tool_call_name="t"),
    lambda: ag.ReasoningMessageStartEvent(message_id="t1"),
)


def begin_pipeline() -> tuple[EventPipeline, EventLog]:
    log, ids = EventLog("r1", log_memory(1 << 40, 1 << 40), Flusher()), count(1)
    made = EventPipeline(lambda: f"id-{next(ids)}", log)
    made.start_from(asking(), set())
    made.write(ag.RunStartedEvent(thread_id="t1", run_id="r1"))
    for make in OPENED:
        made.submit(make())  # type: ignore[arg-type]
    return made, log


def outcome(steps: list[Make]) -> tuple[list[bytes], list[ag.EventType], list[str], Change | None]:
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeltaTemplate, "of", lambda *_: None)
        return outcome(steps)


@given(STEPS)
async def test_a_run_is_the_same_with_and_without_the_fast_path(steps: list[Make]) -> None:
    assert outcome(steps) == outcome_on_normal_path(steps)


@pytest.mark.parametrize("first", range(len(DELTAS)))
async def test_it_is_the_same_behind_each_delta_and_with_anything_between_two(first: int) -> None:
    delta = DELTAS[first]
    for other in (*DELTAS, *OTHERS):
        steps = [delta, delta, other, delta, delta, delta, other, other]
        assert outcome(steps) == outcome_on_normal_path(steps)


async def test_a_delta_that_was_changed_after_it_was_accepted_is_validated_again() -> None:
    made, log = begin_pipeline()
    event = ag.TextMessageContentEvent(message_id="m1", delta="a")
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
