"""Tools of the agents of every framework: plain functions, which each framework wraps in its own way."""

from ag_ui.core import RunAgentInput


def roll(sides: int) -> str:
    """Roll a die."""
    return f"rolled {sides}"


def stumble(sides: int) -> str:
    """Fail."""
    raise RuntimeError(f"secret {sides}")


def charge(sides: int) -> str:
    """Charge."""
    return f"charged {sides}"


def filled(input: RunAgentInput) -> RunAgentInput:
    """Return the input with a value in each field, as packages before 1.0 demand it."""
    return input.model_copy(update={"state": {}, "tools": [], "context": [], "forwarded_props": {}})
