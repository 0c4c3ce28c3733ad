"""The builtin tools: the time, and arithmetic, where nothing but arithmetic gives any number."""

import contextlib

import pytest

from agui_container.ports import Tool, ToolContent, ToolError
from agui_container.tools.builtin import MAX_LENGTH, builtin_tools, evaluate
from tests.contexts import run_context


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2*(3+4)", 14),
        (" 1 + 2 ", 3),
        ("7 / 2", 3.5),
        ("-7 % 4", 1),
        ("2 ** 10", 1024),
        ("2 ** -1", 0.5),
        ("2 ** 0.5 * 2 ** 0.5", 2.0000000000000004),
        ("0.1 + 0.2", 0.30000000000000004),
        ("2 ** 4095", 2**4095),
        ("1 ** 999999999999", 1),
        ("round(2.6)", 3),
        ("sqrt(16)", 4.0),
        ("min(3, 1, 2) + max(1, 2)", 3),
        ("round(2 * pi)", 6),
    ],
)
def test_it_computes(expression: str, value: float) -> None:
    assert evaluate(expression) == value


REFUSED = {
    r"^Division by zero\.$": ["1 / 0", "1 // 0", "1 % 0", "0 ** -1", "1.0 / (2 - 2)"],
    r"^The numbers are too large\.$": [
        "9 ** 9 ** 9",
        "2 ** 4096",
        "2 ** 4000 ** 100",
        "10.0 ** 400",
        "1e999",
        "1e308 * 10 - 1e308 * 10",
        "(2 ** 4000) / 3",
        "sqrt(2 ** 4000)",
    ],
    r"^This is not arithmetic: .+ abs, round, sqrt, min, max, pi, e\.$": [
        "__import__('os')",
        "'a' * 10",
        "True + 1",
        "x",
        "1 < 2",
        "1 if 1 else 2",
        "[1, 2]",
        "(1).real",
        "min(*[1, 2])",
        "round(5, ndigits=-9)",
        "pow(2, 3)",
        "(lambda: 1)()",
    ],
    r"^The expression is too long": ["1" * (MAX_LENGTH + 1)],
    r"^The result is not a real number\.$": ["(-8) ** 0.5"],
    r"^sqrt is not defined for this number\.$": ["sqrt(-1)"],
    r"^(sqrt|round) takes 1 argument\(s\)\.$": ["sqrt()", "round(5, -9)"],
    r"^min takes 2 or more argument\(s\)\.$": ["min(1)"],
}


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [(expression, sentence) for sentence, expressions in REFUSED.items() for expression in expressions],
)
def test_everything_else_is_refused_with_a_reason(expression: str, sentence: str) -> None:
    with pytest.raises(ToolError, match=sentence):
        evaluate(expression)


@pytest.mark.parametrize("expression", ["", "1 +", "2 2", "1; 2", "x = 1", "1\x00", "(" * 400 + ")" * 400, "import os"])
def test_text_that_is_not_an_expression_is_refused(expression: str) -> None:
    with pytest.raises(ToolError):
        evaluate(expression)


@pytest.mark.parametrize(
    "expression", ["-" * 499 + "1", "(" * 249 + "1" + ")" * 249, "1" + "+1" * 249, "2" + "**1" * 166]
)
def test_deep_nesting_is_computed_or_refused(expression: str) -> None:
    with contextlib.suppress(ToolError):
        assert evaluate(expression) in (1, -1, 2, 250)


def tool(name: str, now: float = 0.0) -> Tool:
    return next(tool for tool in builtin_tools(lambda: now) if tool.spec.name == name)


async def call(name: str, **arguments: object) -> ToolContent:
    return await tool(name, now=1_700_000_000.9).call(arguments, run_context())


async def test_calculate_gives_the_value_as_text() -> None:
    assert await call("calculate", expression="2*(3+4)") == "14"
    assert await call("calculate", expression="1/4") == "0.25"


@pytest.mark.parametrize("arguments", [{}, {"timezone": "UTC"}, {"timezone": None}, {"timezone": ""}])
async def test_current_time_is_utc_with_seconds(arguments: dict[str, object]) -> None:
    assert await call("current_time", **arguments) == "2023-11-14T22:13:20+00:00"


async def test_current_time_knows_time_zones() -> None:
    assert await call("current_time", timezone="Europe/Berlin") == "2023-11-14T23:13:20+01:00"


@pytest.mark.parametrize("name", ["Mars/Base", "../../etc/passwd", "/etc/passwd", "Europe", "x" * 5000, "a\x00b"])
async def test_current_time_refuses_other_names(name: str) -> None:
    with pytest.raises(ToolError, match=r"^There is no time zone named '.{1,64}'\. Use an IANA name"):
        await call("current_time", timezone=name)
