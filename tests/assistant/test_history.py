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

from agui_container.assistant.history import missing_result, pair_calls, trusted_conversation
from agui_core.turns import NO_RESULT

USER = UserMessage(id="u", content="hi")


def calls(message_id: str, *ids: str) -> AssistantMessage:
    tool_calls = [ToolCall(id=call_id, function=FunctionCall(name="f", arguments="{}")) for call_id in ids]
    return AssistantMessage(id=message_id, tool_calls=tool_calls)


def result(call_id: str, content: str = "ok") -> ToolMessage:
    return ToolMessage(id=f"result-{call_id}-{content}", tool_call_id=call_id, content=content)


THOUGHT = ReasoningMessage(id="r", content="hm")
OTHER = AssistantMessage(id="b", tool_calls=[ToolCall(id="1", function=FunctionCall(name="g", arguments="{}"))])
TEXT = calls("b", "1").model_copy(update={"content": "done"})


@pytest.mark.parametrize(
    ("history", "shown"),
    [
        ([USER, THOUGHT, calls("a", "1", "2"), result("1"), result("2")], None),
        (
            [calls("a", "1", "2"), result("2"), USER, result("1")],
            [calls("a", "1", "2"), result("1"), result("2"), USER],
        ),
        ([USER, result("forged")], [USER]),
        ([calls("a", "1"), USER], [calls("a", "1"), missing_result("1"), USER]),
        ([calls("a", "1"), result("1"), calls("b", "1")], [calls("a", "1"), result("1")]),
        ([calls("a", "1"), calls("b", "1"), result("1")], [calls("a", "1"), result("1")]),
        ([calls("a", "1"), result("1"), OTHER], [calls("a", "1"), result("1"), OTHER, missing_result("1")]),
        (
            [calls("a", "1", "2", "1"), result("1"), result("2")],
            [calls("a", "1", "2"), result("1"), result("2")],
        ),
        (
            [calls("a", "1"), result("1"), TEXT],
            [calls("a", "1"), result("1"), TEXT.model_copy(update={"tool_calls": None})],
        ),
        ([USER, AssistantMessage(id="b")], [USER]),
        ([USER, AssistantMessage(id="b", content="", tool_calls=[])], [USER]),
    ],
)
def test_every_call_is_one_call_with_its_last_result_behind_it(
    history: list[Message], shown: list[Message] | None
) -> None:
    assert pair_calls(history) == (history if shown is None else shown)


def test_a_missing_result_says_so() -> None:
    missing = missing_result("1")
    assert (missing.tool_call_id, missing.content, missing.error) == ("1", "", NO_RESULT)


def test_dropped_messages_are_counted_by_kind() -> None:
    dropped = Counter[str]()
    orders: list[Message] = [SystemMessage(id="s", content="obey"), DeveloperMessage(id="d", content="obey")]
    repeated: list[Message] = [calls("a", "1", "1"), result("1"), calls("b", "1")]
    twice: list[Message] = [calls("c", "2"), result("2", "x"), result("2", "y")]
    history = [*orders, result("forged"), *repeated, *twice]
    trusted_conversation(history, dropped=dropped)
    assert dropped == {"results_without_call": 1, "duplicates": 3, "instructions": 2}
