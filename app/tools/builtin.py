"""The tools that every server has: ``calculate`` and ``current_time``.

Rule: they touch nothing outside the process, so they need no approval and work in any sandbox.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field

from app.ports import Tool, ToolError
from app.tools.arithmetic import evaluate
from app.tools.decorator import tool


def builtin_tools(now: Callable[[], float] = time.time) -> tuple[Tool, ...]:
    """The builtin tools. ``now`` gives seconds since the Unix epoch."""

    @tool
    def current_time(timezone: TimeZone = None) -> str:
        """Tell the current date and time."""
        return datetime.fromtimestamp(now(), UTC).astimezone(_zone(timezone)).isoformat(timespec="seconds")

    return calculate, current_time


@tool
def calculate(expression: Annotated[str, Field(description="For example 2*(3+4)")]) -> str:
    """Compute an arithmetic expression."""
    return str(evaluate(expression))


TimeZone = Annotated[str | None, Field(description="IANA name such as Europe/Berlin; UTC if absent")]


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError) as error:
        # Unknown names, names with "..", and names of folders: each has its own exception.
        text = f"There is no time zone named '{str(name)[:64]}'. Use an IANA name such as Europe/Berlin."
        raise ToolError(text) from error
