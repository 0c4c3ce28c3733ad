"""The tools that every server has: ``calculate`` and ``current_time``.

Rule: they touch nothing outside the process, so they need no approval and work in any sandbox.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from app.ports import Tool, ToolError
from app.tools.arithmetic import evaluate
from app.tools.function import FunctionTool


def builtin_tools(now: Callable[[], float] = time.time) -> tuple[Tool, ...]:
    """The builtin tools. ``now`` gives seconds since the Unix epoch."""

    def current_time(timezone: str | None = None) -> str:
        return datetime.fromtimestamp(now(), UTC).astimezone(_zone(timezone)).isoformat(timespec="seconds")

    return (
        FunctionTool("calculate", "Compute an arithmetic expression.", CALCULATE, calculate),
        FunctionTool("current_time", "Tell the current date and time.", CURRENT_TIME, current_time),
    )


def calculate(expression: str) -> str:
    """The value of an arithmetic expression, as text."""
    if not isinstance(expression, str):
        raise ToolError("The expression must be a string.")
    return str(evaluate(expression))


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError, TypeError, AttributeError) as error:
        # Unknown names, names with "..", names of folders, and what is not a name at all: each has its own exception.
        text = f"There is no time zone named '{str(name)[:64]}'. Use an IANA name such as Europe/Berlin."
        raise ToolError(text) from error


CALCULATE: dict[str, object] = {
    "type": "object",
    "properties": {"expression": {"type": "string", "description": "For example 2*(3+4)"}},
    "required": ["expression"],
    "additionalProperties": False,
}
CURRENT_TIME: dict[str, object] = {
    "type": "object",
    "properties": {"timezone": {"type": "string", "description": "IANA name such as Europe/Berlin; UTC if absent"}},
    "additionalProperties": False,
}
