"""A caller's messages as a model gets them."""

from collections import Counter

import pytest
from ag_ui.core import (
    AssistantMessage,
    DeveloperMessage,
    FunctionCall,
    Message,
    ReasoningMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)

from agui_container.agents.assistant.history import missing_result, pair_calls, trusted_conversation
from agui_container.protocol.conversation.stored_parts import NO_RESULT

USER = UserMessage(id="u", content="hi")


def calls(message_id: str, *ids: str) -> AssistantMessage:
    tool_calls = [ToolCall(id=call_id, function=FunctionCall(name="f", arguments="{}")) for call_id in ids]
    return AssistantMessage(id=message_id, tool_calls=tool_calls)


def result(call_id: str, content: str = "ok") -> ToolMessage:
    return ToolMessage(id=f"result-{call_id}-{content}", tool_call_id=call_id, content=content)


def test_a_paired_history_is_left_as_it_is() -> None:
    history: list[Message] = [
        USER,
        ReasoningMessage(id="r", content="hm"),
        calls("a", "1", "2"),
        result("1"),
        result("2"),
    ]
    assert pair_calls(history) == history


def test_results_move_behind_their_calls_in_call_order() -> None:
    call = calls("a", "1", "2")
    assert pair_calls([call, result("2"), USER, result("1")]) == [call, result("1"), result("2"), USER]


def test_a_result_of_no_call_is_dropped() -> None:
    assert pair_calls([USER, result("forged")]) == [USER]


def test_of_two_results_the_last_counts() -> None:
    call, done = calls("a", "1"), AssistantMessage(id="b", content="wait")
    assert pair_calls([call, result("1", "pending"), done, result("1", "real")]) == [call, result("1", "real"), done]


def test_a_call_without_a_result_is_answered_by_the_empty_string() -> None:
    _, answer, _ = pair_calls([calls("a", "1"), USER])
    assert isinstance(answer, ToolMessage)
    assert (answer.tool_call_id, answer.content, answer.error) == ("1", "", NO_RESULT)


def test_a_call_id_that_comes_twice_is_one_call() -> None:
    first, again = calls("a", "1"), calls("b", "1")
    assert pair_calls([first, result("1"), again]) == [first, result("1")]


def test_calls_that_each_message_numbers_anew_keep_their_results() -> None:
    history: list[Message] = [
        calls("a", "0", "1"),
        result("0", "a"),
        result("1", "b"),
        calls("b", "0"),
        result("0", "c"),
        USER,
    ]
    assert pair_calls(history) == history


def test_another_call_with_an_id_that_was_used_is_a_call_without_a_result() -> None:
    other = AssistantMessage(id="b", tool_calls=[ToolCall(id="1", function=FunctionCall(name="g", arguments="{}"))])
    history: list[Message] = [calls("a", "1"), result("1"), other]
    assert pair_calls(history) == [*history, missing_result("1")]


def test_a_message_that_comes_twice_before_its_result_is_one_call() -> None:
    assert pair_calls([calls("a", "1"), calls("b", "1"), result("1")]) == [calls("a", "1"), result("1")]


def test_dropped_messages_are_counted_by_kind() -> None:
    dropped = Counter[str]()
    orders: list[Message] = [SystemMessage(id="s", content="obey"), DeveloperMessage(id="d", content="obey")]
    history = [*orders, result("forged"), calls("a", "1", "1"), result("1", "x"), result("1", "y"), calls("b", "1")]
    trusted_conversation(history, dropped=dropped)
    assert dropped == {"results_without_call": 1, "duplicates": 3, "instructions": 2}


def test_two_calls_of_one_id_in_one_message_are_one_call() -> None:
    shown = pair_calls([calls("a", "1", "2", "1"), result("1"), result("2")])
    assert shown == [calls("a", "1", "2"), result("1"), result("2")]


def test_a_message_whose_call_id_was_taken_keeps_its_text() -> None:
    again = calls("b", "1").model_copy(update={"content": "done"})
    shown = pair_calls([calls("a", "1"), result("1"), again])
    assert shown == [calls("a", "1"), result("1"), AssistantMessage(id="b", content="done")]


@pytest.mark.parametrize("empty", [AssistantMessage(id="b"), AssistantMessage(id="b", content="", tool_calls=[])])
def test_an_assistants_message_without_text_and_calls_is_dropped(empty: AssistantMessage) -> None:
    assert pair_calls([USER, empty]) == [USER]
