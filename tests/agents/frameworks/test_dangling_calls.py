"""Calls without a result in a framework's input: placeholders, their position, and calls that stay open."""

import pytest
from ag_ui.core import AssistantMessage, FunctionCall, Message, ToolCall, ToolMessage, UserMessage

from agui_container.agents.frameworks.translation import with_placeholders
from agui_core.turns import NO_RESULT

pytestmark = pytest.mark.packages


def user(name: str) -> UserMessage:
    return UserMessage(id=name, content="hi")


def calls(*names: str) -> AssistantMessage:
    return AssistantMessage(
        id=f"says-{names[0]}",
        tool_calls=[ToolCall(id=name, function=FunctionCall(name=f"use-{name}", arguments="{}")) for name in names],
    )


def result(name: str, content: str = "done", key: str = "") -> ToolMessage:
    return ToolMessage(id=key or f"result-{name}", tool_call_id=name, content=content)


def missing(name: str) -> ToolMessage:
    return ToolMessage(id=f"unanswered-{name}", tool_call_id=name, content=NO_RESULT, error=NO_RESULT)


SAID = AssistantMessage(id="said", content="Well.")
LATE = result("a", "red", key="unanswered-a")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ([user("1"), calls("a")], [user("1"), calls("a"), missing("a")]),
        ([calls("a"), user("1")], [calls("a"), missing("a"), user("1")]),
        ([calls("a"), SAID], [calls("a"), missing("a"), SAID]),
        ([calls("a", "b"), result("b"), user("1")], [calls("a", "b"), missing("a"), result("b"), user("1")]),
        ([calls("a"), calls("b"), result("a")], [calls("a"), result("a"), calls("b"), missing("b")]),
        ([calls("a"), result("a"), user("1")], [calls("a"), result("a"), user("1")]),
        ([user("1"), SAID, user("2")], [user("1"), SAID, user("2")]),
        ([result("of nothing"), user("1")], [user("1")]),
        # a result that is somewhere else comes behind its call
        ([calls("a"), user("1"), SAID, missing("a")], [calls("a"), missing("a"), user("1"), SAID]),
        ([calls("a"), user("1"), SAID, result("a")], [calls("a"), result("a"), user("1"), SAID]),
        # a late result takes the place and the id of the placeholder
        ([calls("a"), missing("a"), user("1"), result("a", "red")], [calls("a"), LATE, user("1")]),
        # the last of several results counts under the id of the first
        (
            [calls("a"), result("a", "red"), user("1"), result("a", "blue", key="second")],
            [calls("a"), result("a", "blue"), user("1")],
        ),
    ],
)
def test_every_call_has_one_result_before_the_conversation_goes_on(given: list[Message], shown: list[Message]) -> None:
    assert with_placeholders(given, ()) == shown
    assert with_placeholders(shown, ()) == shown


def test_a_result_of_which_the_framework_has_a_placeholder_is_not_told_under_another_id() -> None:
    given: list[Message] = [calls("a"), user("1"), result("a", "red")]
    assert with_placeholders(given, (), {"unanswered-a"}) == [calls("a"), LATE, user("1")]


def test_client_calls_stay_open_until_the_next_user_message() -> None:
    asked: list[Message] = [user("1"), calls("a", "b"), result("b")]
    assert with_placeholders(asked, {"use-a"}) == asked
    shown = [user("1"), calls("a", "b"), missing("a"), result("b"), user("2")]
    assert with_placeholders([*asked, user("2")], {"use-a"}) == shown
