"""Tools of the agents of every framework: plain functions, which each framework wraps in its own way."""


def roll(sides: int) -> str:
    """Roll a die."""
    return f"rolled {sides}"


def stumble(sides: int) -> str:
    """Fail."""
    raise RuntimeError(f"secret {sides}")


def charge(sides: int) -> str:
    """Charge."""
    return f"charged {sides}"
