"""Deltas of a model become events that are in order and closed, and one message."""

from collections.abc import Sequence

import pytest
from ag_ui.core import AssistantMessage, BaseEvent, FunctionCall, TokenUsage, ToolCall

from agui_container.agents.assistant.model_turn import MAX_CALLS, ModelTurn
from agui_container.agents.tool_calls.tool_call import ModelToolCall
from agui_container.ports import (
    Delta,
    MessageText,
    ReasoningDelta,
    StopDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    UsageDelta,
)
from agui_container.protocol.conversation.match import calls_of
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


def test_text_is_one_message() -> None:
    _, events = feed_turn(TextDelta("Hello "), TextDelta("world"))
    assert lines(events) == [
        "TEXT_MESSAGE_START id-1",
        "TEXT_MESSAGE_CONTENT id-1 Hello ",
        "TEXT_MESSAGE_CONTENT id-1 world",
        "TEXT_MESSAGE_END id-1",
    ]


def test_text_that_goes_on_costs_no_event() -> None:
    turn = ModelTurn(run_context())
    turn.feed(TextDelta("Hello "))
    assert turn.feed(TextDelta("world")) == (MessageText("id-1", "world"),)


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


def test_calls_belong_to_the_assistant_message() -> None:
    turn, events = feed_turn(ToolCallDelta(0, "{}", "add"))
    assert events[0].model_dump()["parent_message_id"] == turn.message_id


def test_reasoning_that_is_left_open_is_closed() -> None:
    _, events = feed_turn(ReasoningDelta("Hm"))
    assert lines(events)[-2:] == ["REASONING_MESSAGE_END id-2", "REASONING_END id-2"]


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


def test_all_calls_are_in_the_last_message_in_the_order_of_the_blocks() -> None:
    turn, _ = feed_turn(
        ReasoningDelta("a"),
        TextDelta("b"),
        ReasoningDelta("c"),
        ToolCallDelta(0, "", "add"),
        ReasoningDelta("d"),
        ToolCallDelta(1, "", "sub"),
    )
    assert [message.content for message in turn.messages] == ["a", "b", "c", None, "d"]
    assert [len(calls_of(message)) for message in turn.messages] == [0, 0, 0, 2, 0]


def test_a_symbol_in_halves_is_joined() -> None:
    turn, events = feed_turn(
        ReasoningDelta("a\ud83d"),
        ReasoningDelta("\ude00"),
        TextDelta("\ud83d"),
        TextDelta("\ude00b"),
        ToolCallDelta(0, '{"a": "\ud83d', "add"),
        ToolCallDelta(1, '{"a": "\ud83d', "add"),
        ToolCallDelta(0, '\ude00"}'),
        ToolCallDelta(1, '\ude01"}'),
    )
    reasoning, message = turn.messages
    assert (reasoning.content, message.content) == ("a😀", "😀b")
    assert [call.arguments for call in turn.calls] == ['{"a": "😀"}', '{"a": "😁"}']
    assert "".join(event.model_dump(by_alias=True).get("delta", "") for event in events).encode()


def test_half_of_a_symbol_that_stays_alone_is_replaced() -> None:
    turn, events = feed_turn(
        ReasoningDelta("a\ud83d"), TextDelta("\ude00b"), TextDelta("c\ud83d"), ToolCallDelta(0, "\ud83d", "add\ud83d")
    )
    reasoning, message = turn.messages
    assert (reasoning.content, message.content) == ("a\ufffd", "\ufffdbc\ufffd")
    assert (turn.calls[0].name, turn.calls[0].arguments) == ("add\ufffd", "\ufffd")
    assert [line for line in lines(events) if "\ufffd" in line] == [
        "REASONING_MESSAGE_CONTENT id-2 \ufffd",
        "TEXT_MESSAGE_CONTENT id-1 \ufffdb",
        "TEXT_MESSAGE_CONTENT id-1 \ufffd",
        "TOOL_CALL_START id-3 add\ufffd",
        "TOOL_CALL_ARGS id-3 \ufffd",
    ]


@pytest.mark.parametrize("arguments", [[], [""], [" ", "\n"]])
def test_a_call_without_arguments_has_an_empty_object(arguments: list[str]) -> None:
    turn, events = feed_turn(ToolCallDelta(0, "", "add"), *(ToolCallDelta(0, piece) for piece in arguments))
    assert turn.calls[0].arguments.strip() == "{}"
    assert lines(events)[-2:] == ["TOOL_CALL_ARGS id-2 {}", "TOOL_CALL_END id-2"]


def test_a_call_that_is_cut_off_gets_no_arguments() -> None:
    turn, _ = feed_turn(ToolCallDelta(0, "", "a"), ToolCallDelta(1, "", "b"), StopDelta(StopReason.LENGTH))
    assert [(call.arguments, call.complete) for call in turn.calls] == [("{}", True), ("", False)]


def test_the_opaque_value_of_a_call_is_kept_with_it() -> None:
    turn, events = feed_turn(ToolCallDelta(0, "{}", "add"), ToolCallDelta(0, encrypted_value="sealed"))
    assert lines(events)[2] == "REASONING_ENCRYPTED_VALUE tool-call id-2 sealed"
    assert turn.calls[0].to_message_call().encrypted_value == "sealed"


def test_two_stretches_of_reasoning_have_two_ids() -> None:
    _, events = feed_turn(ReasoningDelta("a"), TextDelta("b"), ReasoningDelta("c"))
    assert [line for line in lines(events) if "CONTENT" in line] == [
        "REASONING_MESSAGE_CONTENT id-2 a",
        "TEXT_MESSAGE_CONTENT id-1 b",
        "REASONING_MESSAGE_CONTENT id-3 c",
    ]


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


def test_the_message_says_what_the_model_said() -> None:
    turn, _ = feed_turn(TextDelta("So: "), ToolCallDelta(0, "{}", "add"))
    call = ToolCall(id="id-2", function=FunctionCall(name="add", arguments="{}"))
    assert turn.messages[-1] == AssistantMessage(id="id-1", content="So: ", tool_calls=[call])


def test_fields_without_a_value_are_absent_from_the_message() -> None:
    turn, _ = feed_turn()
    assert turn.messages[-1].model_dump(by_alias=True) == {"id": "id-1", "role": "assistant"}


def test_usage_is_kept_for_the_end_of_the_run() -> None:
    ctx, usage = run_context(), TokenUsage(total_tokens=3)
    assert list(ModelTurn(ctx).feed(UsageDelta(usage))) == []
    assert ctx.usage == [usage]


def test_an_answer_of_too_many_calls_is_given_up() -> None:
    turn, _ = feed_turn(*(ToolCallDelta(at, "{}", "add") for at in range(MAX_CALLS)))
    assert len(turn.calls) == MAX_CALLS
    with raises_code(ErrorCode.RUN_LIMIT_EXCEEDED):
        turn.feed(ToolCallDelta(MAX_CALLS, "{}", "add"))
