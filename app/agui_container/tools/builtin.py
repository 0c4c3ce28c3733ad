"""Builtin tools of every server: ``calculate`` and ``current_time``.

Rules: the tools touch nothing outside the process, so they need no approval and work in any sandbox. ``calculate``
parses the expression and computes only the operators and functions in its tables; it never uses ``eval``. No input can
use much time or memory, because the text is short, numbers stay below ``MAX_BITS``, and the size of a power is checked
before it is computed. Any other expression is refused with a ``ToolError`` that the model can act on. It runs on the
event loop, because concurrent calls of ``ast.parse`` in threads of Python 3.11 may fail (cpython issue 106905).
"""

import ast
import math
import operator
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field

from agui_container.ports import Tool, ToolError
from agui_container.tools.function_tool import tool

MAX_LENGTH = 500
"""Characters of an expression."""

MAX_BITS = 4096
"""Bits of an integer."""

Number = int | float

TOO_LARGE = "The numbers are too large."
FORBIDDEN = "This is not arithmetic: use numbers, + - * / // % **, parentheses, and "


def evaluate(expression: str) -> Number:
    """Raise ``ToolError`` if the expression is not arithmetic, is too large, or has no real result."""
    if len(expression) > MAX_LENGTH:
        raise ToolError(f"The expression is too long: {MAX_LENGTH} characters are the limit.")
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except ZeroDivisionError as error:
        raise ToolError("Division by zero.") from error
    except OverflowError as error:
        raise ToolError(TOO_LARGE) from error
    except (RecursionError, MemoryError) as error:
        raise ToolError("The expression is nested too deeply.") from error
    except (SyntaxError, ValueError) as error:
        raise ToolError("The expression cannot be read.") from error


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=value) if type(value) in (int, float):
            return _check_size(value)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
            return _check_size(BINARY[type(op)](_value(left), _value(right)))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in UNARY:
            return UNARY[type(op)](_value(operand))
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return _call(name, [_value(arg) for arg in args])
    raise ToolError(FORBIDDEN + ", ".join((*FUNCTIONS, *CONSTANTS)) + ".")


def _check_size(number: object) -> Number:
    if isinstance(number, int) and number.bit_length() <= MAX_BITS:
        return number
    if isinstance(number, float) and math.isfinite(number):
        return number
    if isinstance(number, complex):
        raise ToolError("The result is not a real number.")
    raise ToolError(TOO_LARGE)


def _call(name: str, args: list[Number]) -> Number:
    function, min_args, max_args = FUNCTIONS[name]
    if not min_args <= len(args) <= max_args:
        raise ToolError(f"{name} takes {min_args if min_args == max_args else f'{min_args} or more'} argument(s).")
    try:
        return _check_size(function(*args))
    except ValueError as error:
        raise ToolError(f"{name} is not defined for this number.") from error


def _power(base: Number, exponent: Number) -> object:
    # The size is checked first, because 9**9**9 would take minutes and gigabytes. Floats raise OverflowError.
    integers = isinstance(base, int) and isinstance(exponent, int)
    if integers and abs(base) > 1 and int(base).bit_length() * exponent > 2 * MAX_BITS:
        raise ToolError(TOO_LARGE)
    return operator.pow(base, exponent)


BINARY: dict[type[ast.operator], Callable[[Number, Number], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
UNARY: dict[type[ast.unaryop], Callable[[Number], Number]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
CONSTANTS = {"pi": math.pi, "e": math.e}
# Name to function, and its smallest and largest number of arguments. round() has one argument only, because
# round(5, -10**9) would compute 10**10**9.
FUNCTIONS: dict[str, tuple[Callable[..., object], int, int]] = {
    "abs": (abs, 1, 1),
    "round": (round, 1, 1),
    "sqrt": (math.sqrt, 1, 1),
    "min": (min, 2, MAX_LENGTH),
    "max": (max, 2, MAX_LENGTH),
}


def builtin_tools(now: Callable[[], float] = time.time) -> tuple[Tool, ...]:
    """Return the builtin tools. ``now`` returns seconds since the Unix epoch."""

    @tool
    def current_time(timezone: TimeZone = None) -> str:
        """Tell the current date and time."""
        return datetime.fromtimestamp(now(), UTC).astimezone(_zone(timezone)).isoformat(timespec="seconds")

    return calculate, current_time


@tool
async def calculate(expression: Annotated[str, Field(description="For example 2*(3+4)")]) -> str:
    """Compute an arithmetic expression."""
    return str(evaluate(expression))


TimeZone = Annotated[str | None, Field(description="IANA name such as Europe/Berlin; UTC if absent")]


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError) as error:
        # ZoneInfo raises a different exception for unknown names, names with ".." and names of folders.
        text = f"There is no time zone named '{str(name)[:64]}'. Use an IANA name such as Europe/Berlin."
        raise ToolError(text) from error
