"""Arithmetic gives the right numbers, and nothing but arithmetic gives any."""

import contextlib

import pytest

from agui_container.ports import ToolError
from agui_container.tools.builtin import MAX_LENGTH, evaluate


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


@pytest.mark.parametrize("expression", ["1 / 0", "1 // 0", "1 % 0", "0 ** -1", "1.0 / (2 - 2)"])
def test_division_by_zero_is_said(expression: str) -> None:
    with pytest.raises(ToolError, match=r"^Division by zero\.$"):
        evaluate(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "9 ** 9 ** 9",
        "2 ** 4096",
        "2 ** 4000 ** 100",
        "10.0 ** 400",
        "1e999",
        "1e308 * 10 - 1e308 * 10",
        "(2 ** 4000) / 3",
        "sqrt(2 ** 4000)",
    ],
)
def test_too_large_numbers_are_refused_before_they_are_computed(expression: str) -> None:
    with pytest.raises(ToolError, match=r"^The numbers are too large\.$"):
        evaluate(expression)


@pytest.mark.parametrize(
    "expression",
    [
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
)
def test_text_that_is_not_arithmetic_is_refused(expression: str) -> None:
    with pytest.raises(ToolError, match=r"^This is not arithmetic: .+ abs, round, sqrt, min, max, pi, e\.$"):
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


def test_long_text_is_refused() -> None:
    with pytest.raises(ToolError, match="too long"):
        evaluate("1" * (MAX_LENGTH + 1))
