"""Tools that count their calls, for agents of one's own that call them."""

from collections import Counter

from agui_container import ToolError, tool

CALLS: Counter[str] = Counter()
"""Number of calls that were run, by name. Tests clear it."""


@tool
def pay(amount: int) -> str:
    """Pay an amount."""
    CALLS["pay"] += 1
    return f"paid {amount}"


@tool
def refuse() -> str:
    """Fail."""
    raise ToolError("the shop is closed.")


@tool
def spin(sides: int) -> str:
    """Spin a wheel."""
    CALLS["spin"] += 1
    return f"spun {sides}, {CALLS['spin']} in all"


tools = (pay, refuse, spin)
