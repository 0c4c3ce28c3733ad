"""The agents of the table of cases as Microsoft's Agent Framework has them. They run in an environment of their own."""

from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatClient


@tool(approval_mode="never_require")
def roll(sides: int) -> str:
    """Roll a die."""
    return f"rolled {sides}"


@tool(approval_mode="never_require")
def stumble(sides: int) -> str:
    """Fail."""
    raise RuntimeError(f"secret {sides}")


@tool(approval_mode="always_require")
def charge(sides: int) -> str:
    """Charge."""
    return f"charged {sides}"


agent = Agent(OpenAIChatClient("scripted"), name="dice", tools=[roll, stumble, charge])
