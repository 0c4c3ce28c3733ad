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
    ],
)
def test_a_call_without_a_result_is_answered_before_the_conversation_goes_on(
    given: list[Message], shown: list[Message]
) -> None:
    assert with_placeholders(given, ()) == shown
    assert with_placeholders(shown, ()) == shown


@pytest.mark.parametrize("stray", [missing("a"), result("a")], ids=["stand-in", "result"])
def test_a_result_that_has_been_put_elsewhere_comes_back_behind_its_call(stray: ToolMessage) -> None:
    assert with_placeholders([calls("a"), user("1"), SAID, stray], ()) == [calls("a"), stray, user("1"), SAID]


def test_a_late_result_takes_the_place_and_the_id_of_what_stood_in() -> None:
    late = result("a", "red", key="unanswered-a")
    assert with_placeholders([calls("a"), missing("a"), user("1"), result("a", "red")], ()) == [
        calls("a"),
        late,
        user("1"),
    ]


def test_of_several_results_the_last_counts_under_the_id_of_the_first() -> None:
    given: list[Message] = [calls("a"), result("a", "red"), user("1"), result("a", "blue", key="second")]
    assert with_placeholders(given, ()) == [calls("a"), result("a", "blue"), user("1")]


def test_a_result_of_which_the_framework_has_a_stand_in_is_not_told_under_another_id() -> None:
    told = result("a", "red", key="unanswered-a")
    assert with_placeholders([calls("a"), user("1"), result("a", "red")], (), {"unanswered-a"}) == [
        calls("a"),
        told,
        user("1"),
    ]


def test_client_calls_stay_open_until_the_next_user_message() -> None:
    asked: list[Message] = [user("1"), calls("a", "b"), result("b")]
    assert with_placeholders(asked, {"use-a"}) == asked
    assert with_placeholders([*asked, user("2")], {"use-a"}) == [
        *(user("1"), calls("a", "b"), missing("a"), result("b"), user("2"))
    ]
