"""The index of turns and calls. In the tables a word is a message of a conversation.

``a1+b1`` is a message of the assistant with the calls a and b, and ``s:a1`` one of a subagent. ``=a`` is a result of a,
and ``?a`` a placeholder for one. Any other word is a message of the user or, in capital letters, of the assistant.
"""

import pytest
from ag_ui.core import AssistantMessage, FunctionCall, Message, ToolCall, ToolMessage, UserMessage

from agui_core.turns import (
    NO_RESULT,
    index_calls,
    is_awaiting_client,
    open_calls,
    unanswered_in_last_turn,
    with_results,
)


def calls(word: str) -> list[ToolCall]:
    return [
        ToolCall(id=name, function=FunctionCall(name=f"use-{name}", arguments="{}"))
        for name in word.replace("1", "").split("+")
    ]


def conversation(words: str) -> list[Message]:
    messages: list[Message] = []
    for at, word in enumerate(words.split()):
        key, owner = f"{at}", "sub" if word.startswith("s:") else None
        if word[0] in "=?":
            content = NO_RESULT if word[0] == "?" else f"{at}"
            messages.append(ToolMessage(id=key, tool_call_id=word[1:], content=content))
        elif "1" in word:
            tool_calls = calls(word.removeprefix("s:"))
            messages.append(AssistantMessage(id=key, tool_calls=tool_calls, subagent_run_id=owner))
        elif word.isupper():
            messages.append(AssistantMessage(id=key, content=word))
        else:
            messages.append(UserMessage(id=key, content=word))
    return messages


@pytest.mark.parametrize(
    ("words", "paired"),
    [
        pytest.param("hi a1 =a OK", "1:a=2", id="a result"),
        pytest.param("a1+b1 =b =a", "0:a=2 0:b=1", id="results in another order"),
        pytest.param("a1 b1 =a", "0:a=2 1:b", id="calls of two messages"),
        pytest.param("a1 hi =a =a", "0:a=3", id="the last result"),
        pytest.param("a1 =a ?a", "0:a=1", id="a result before a placeholder"),
        pytest.param("a1 ?a", "0:a=1", id="a placeholder alone"),
        pytest.param("=a a1", "1:a=0", id="a result before its call"),
        pytest.param("=a hi", "", id="a result without a call"),
        pytest.param("a1 =a a1 =a", "0:a=1 2:a=3", id="an id that is used again"),
        pytest.param("a1 =a =a hi a1", "0:a=1 4:a=2", id="a result that was moved to an earlier call"),
        pytest.param("a1 ?a =a =a a1", "0:a=2 4:a=3", id="a result that was moved behind a placeholder"),
        pytest.param("a1 =a hi a1", "0:a=1 3:a", id="no result to move"),
        pytest.param("a1+a1 =a", "0:a=1", id="an id twice in a message"),
    ],
)
def test_each_call_has_its_result(words: str, paired: str) -> None:
    messages = conversation(words)
    index = index_calls(messages)
    made = [call for message, calls in zip(messages, index, strict=True) if message.role != "tool" for call in calls]
    found = [f"{it.message.id}:{it.call.id}{f'={it.result.id}' if it.result else ''}" for it in made]
    assert " ".join(found) == paired
    answered = {
        message.id: calls for message, calls in zip(messages, index, strict=True) if isinstance(message, ToolMessage)
    }
    assert all(answered[result.id] == [call] for call in made for result in call.results)
    assert [each.id for each in with_results(messages, lambda call: call.results)] == [
        key
        for message in messages
        if message.role != "tool"
        for key in (message.id, *(result.id for it in made if it.message is message for result in it.results))
    ]


@pytest.mark.parametrize(
    ("words", "in_turn", "still_open"),
    [
        pytest.param("", "", "", id="nothing"),
        pytest.param("hi a1+b1 =a", "b", "b", id="one of two"),
        pytest.param("hi a1 b1", "a b", "a b", id="calls of two messages"),
        pytest.param("hi a1 =a b1", "b", "b", id="a second step"),
        pytest.param("hi a1 so", "", "", id="the user has written on"),
        pytest.param("hi a1 OK", "a", "", id="the assistant has answered"),
        pytest.param("hi a1 OK b1", "a b", "b", id="the assistant has gone on"),
        pytest.param("hi a1 s:b1", "a", "a", id="calls of a subagent"),
        pytest.param("hi a1 =a OK", "", "", id="a complete turn"),
    ],
)
def test_open_calls_are_those_of_the_last_turn_without_a_result(words: str, in_turn: str, still_open: str) -> None:
    messages = conversation(words)
    assert " ".join(call.id for call in unanswered_in_last_turn(messages)) == in_turn
    assert " ".join(call.id for call in open_calls(messages)) == still_open


@pytest.mark.parametrize(
    ("words", "is_awaiting"),
    [("a1+b1 =a", True), ("a1+b1 =b", False), ("a1+b1 =a =b", False), ("b1 =a hi", False), ("b1", False), ("", False)],
)
def test_a_client_that_has_sent_some_results_owes_the_others(words: str, *, is_awaiting: bool) -> None:
    assert is_awaiting_client(conversation(words), {"use-b"}) is is_awaiting
