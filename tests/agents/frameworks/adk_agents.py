"""The agents of the table of cases as Google's ADK has them. They run in an environment of their own."""

from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool


def roll(sides: int) -> str:
    """Roll a die."""
    return f"rolled {sides}"


def stumble(sides: int) -> str:
    """Fail."""
    raise RuntimeError(f"secret {sides}")


def charge(sides: int) -> str:
    """Charge."""
    return f"charged {sides}"


agent = LlmAgent(
    name="dice", model="gemini-scripted", tools=[roll, stumble, FunctionTool(charge, require_confirmation=True)]
)
