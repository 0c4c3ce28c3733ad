"""A tool with an effect that tests count."""

from agui_container import tool

PAID: list[int] = []


@tool
def pay(amount: int) -> str:
    """Pay an amount."""
    PAID.append(amount)
    return f"paid {amount}"
