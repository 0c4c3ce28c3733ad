"""Calls of a ``@tool``: arguments arrive as their types, wrong ones are named, and it is still a function."""

import datetime as dt
from collections.abc import Awaitable, Mapping

import pytest

from agui_container.ports import RunContext, ToolError
from agui_container.tools.function_tool import tool
from tests.contexts import run_context
from tests.tools.doubles import Colour, Item, Point, parameters_of


@pytest.mark.parametrize(
    ("hint", "sent", "received"),
    [
        (int, "3", 3),
        (dt.date, "2026-11-21", dt.date(2026, 11, 21)),
        (Colour, "blue", Colour.BLUE),
        (Point, {"x": 1}, Point(1.0)),
        (Item, {"title": "a", "parts": [{"title": "b"}]}, Item(title="a", parts=[Item(title="b")])),
        (list[Item] | None, None, None),
    ],
)
async def test_arguments_arrive_as_their_types(hint: object, sent: object, received: object) -> None:
    arrived = []

    def function(a: object) -> None:
        arrived.append(a)

    function.__annotations__["a"] = hint
    await tool(function).call({"a": sent}, run_context())
    assert arrived == [received]


async def test_an_absent_argument_takes_the_functions_default() -> None:
    @tool
    async def function(a: int, b: str = "b", *, c: int | None = None) -> str:
        return f"{a} {b} {c}"

    assert await function.call({"a": 1}, run_context()) == "1 b None"
    assert await function.call({"a": 1, "c": 2}, run_context()) == "1 b 2"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "order: 'items' is missing."),
        (
            {"items": [{"title": "a", "count": 0}], "when": "soon"},
            (
                "order: 'items.0.count': Input should be greater than or equal to 1; "
                "'when': Input should be a valid date or datetime, input is too short."
            ),
        ),
        ({"items": [], "whom": "me"}, "order: 'whom' is not an argument."),
        ({"items": [], "ctx": "mine"}, "order: 'ctx' is not an argument."),
    ],
)
async def test_wrong_arguments_are_named(arguments: Mapping[str, object], sentence: str) -> None:
    @tool
    async def order(items: list[Item], ctx: RunContext, when: dt.date | None = None) -> None:
        raise NotImplementedError

    with pytest.raises(ToolError) as caught:
        await order.call(arguments, run_context())
    assert str(caught.value) == sentence


async def test_the_context_is_given_and_not_shown() -> None:
    @tool
    async def function(a: int, ctx: RunContext) -> str:
        return f"{a} {ctx.run_id}"

    assert list(parameters_of(function)["properties"]) == ["a"]
    assert await function.call({"a": 1}, run_context()) == "1 run"


async def test_a_tool_is_still_a_function() -> None:
    @tool
    def add(a: int, b: int) -> int:
        return a + b

    @tool(name="later")
    async def later(a: int) -> int:
        return a

    assert add(1, b=2) == 3
    waiting: Awaitable[int] = later(4)
    assert await waiting == 4


async def test_a_bound_method_can_be_a_tool() -> None:
    class Shop:
        def __init__(self, name: str) -> None:
            self.name = name

        def price(self, item: str) -> str:
            """Tell a price."""
            return f"{item} at {self.name}"

    bound = tool(Shop("Ada's").price)
    assert bound.spec.name == "price"
    assert await bound.call({"item": "tea"}, run_context()) == "tea at Ada's"
