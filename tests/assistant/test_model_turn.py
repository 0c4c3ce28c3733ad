"""Deltas of a model become events that are in order and closed, and one message."""

from collections.abc import Sequence

import pytest
from ag_ui.core import BaseEvent

from agui_container.agents.gate.calls import ModelToolCall
from agui_container.assistant.model_turn import MAX_CALLS, ModelTurn
from agui_container.ports import Delta, ReasoningDelta, StopDelta, StopReason, TextDelta, ToolCallDelta
from agui_container.protocol.errors import ErrorCode
from tests.contexts import expanded, run_context
from tests.engine.doubles import raises_code


def feed_turn(*deltas: Delta) -> tuple[ModelTurn, list[BaseEvent]]:
    turn = ModelTurn(run_context())
    items = [item for delta in deltas for item in turn.feed(delta)]
    return turn, expanded([*items, *turn.close()])


def lines(events: Sequence[BaseEvent]) -> list[str]:
    """One short line per event: what it is, whose it is, and what it says."""
    return [
        " ".join(
            str(value)
            for name, value in event.model_dump(mode="json").items()
            if name not in ("role", "parent_message_id")
        )
        for event in events
    ]


def test_reasoning_is_closed_before_text_and_text_before_calls() -> None:
    _, events = feed_turn(
        ReasoningDelta("Hm"),
        ReasoningDelta("m."),
        TextDelta("So: "),
        ToolCallDelta(0, '{"a":', "add"),
        ToolCallDelta(0, "1}"),
    )
    assert lines(events) == [
        "REASONING_START id-2",
        "REASONING_MESSAGE_START id-2",
        "REASONING_MESSAGE_CONTENT id-2 Hm",
        "REASONING_MESSAGE_CONTENT id-2 m.",
        "REASONING_MESSAGE_END id-2",
        "REASONING_END id-2",
        "TEXT_MESSAGE_START id-1",
        "TEXT_MESSAGE_CONTENT id-1 So: ",
        "TEXT_MESSAGE_END id-1",
        "TOOL_CALL_START id-3 add",
        'TOOL_CALL_ARGS id-3 {"a":',
        "TOOL_CALL_ARGS id-3 1}",
        "TOOL_CALL_END id-3",
    ]


def test_text_after_reasoning_begins_a_message_and_text_after_a_call_goes_on_in_the_same_one() -> None:
    turn, events = feed_turn(
        TextDelta("a"), ReasoningDelta("b"), TextDelta("c"), ToolCallDelta(0, "{}", "add"), TextDelta("d")
    )
    assert lines(events) == [
        "TEXT_MESSAGE_START id-1",
        "TEXT_MESSAGE_CONTENT id-1 a",
        "TEXT_MESSAGE_END id-1",
        "REASONING_START id-2",
        "REASONING_MESSAGE_START id-2",
        "REASONING_MESSAGE_CONTENT id-2 b",
        "REASONING_MESSAGE_END id-2",
        "REASONING_END id-2",
        "TEXT_MESSAGE_START id-3",
        "TEXT_MESSAGE_CONTENT id-3 c",
        "TEXT_MESSAGE_END id-3",
        "TOOL_CALL_START id-4 add",
        "TOOL_CALL_ARGS id-4 {}",
        "TEXT_MESSAGE_START id-3",
        "TEXT_MESSAGE_CONTENT id-3 d",
        "TEXT_MESSAGE_END id-3",
        "TOOL_CALL_END id-4",
    ]
    assert [message.content for message in turn.messages] == ["a", "b", "cd"]


@pytest.mark.parametrize("arguments", [[], [""], [" ", "\n"]])
def test_a_call_without_arguments_has_an_empty_object(arguments: list[str]) -> None:
    turn, events = feed_turn(ToolCallDelta(0, "", "add"), *(ToolCallDelta(0, piece) for piece in arguments))
    assert turn.calls[0].arguments.strip() == "{}"
    assert lines(events)[-2:] == ["TOOL_CALL_ARGS id-2 {}", "TOOL_CALL_END id-2"]


def test_a_call_that_is_cut_off_gets_no_arguments() -> None:
    turn, _ = feed_turn(ToolCallDelta(0, "", "a"), ToolCallDelta(1, "", "b"), StopDelta(StopReason.LENGTH))
    assert [(call.arguments, call.complete) for call in turn.calls] == [("{}", True), ("", False)]


def test_empty_deltas_open_nothing() -> None:
    _, events = feed_turn(TextDelta(""), ReasoningDelta(""))
    assert events == []


def test_parallel_calls_may_come_interleaved() -> None:
    turn, events = feed_turn(
        ToolCallDelta(0, "{", "a"), ToolCallDelta(1, "[", "b"), ToolCallDelta(0, "}"), ToolCallDelta(1, "]")
    )
    assert turn.calls == [ModelToolCall("id-2", "a", "{}"), ModelToolCall("id-3", "b", "[]")]
    assert lines(events)[-2:] == ["TOOL_CALL_END id-2", "TOOL_CALL_END id-3"]


def test_a_call_that_begins_without_a_name_is_the_models_fault() -> None:
    turn = ModelTurn(run_context())
    with raises_code(ErrorCode.MODEL_ERROR):
        turn.feed(ToolCallDelta(0, "{}"))


def test_an_answer_of_too_many_calls_is_given_up() -> None:
    turn, _ = feed_turn(*(ToolCallDelta(at, "{}", "add") for at in range(MAX_CALLS)))
    assert len(turn.calls) == MAX_CALLS
    with raises_code(ErrorCode.RUN_LIMIT_EXCEEDED):
        turn.feed(ToolCallDelta(MAX_CALLS, "{}", "add"))
