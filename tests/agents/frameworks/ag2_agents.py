"""The agents of the table of cases as AG2 has them. They run in an environment of their own."""

from ag2 import Agent, tool
from ag2.config import OpenAIConfig
from ag2.middleware import approval_required


@tool
def roll(sides: int) -> str:
    """Roll a die."""
    return f"rolled {sides}"


@tool
def stumble(sides: int) -> str:
    """Fail."""
    raise RuntimeError(f"secret {sides}")


@tool(middleware=[approval_required()])
def charge(sides: int) -> str:
    """Charge."""
    return f"charged {sides}"


config = OpenAIConfig(model="scripted", streaming=True, max_retries=0)
agent = Agent("dice", config=config, tools=[roll, stumble, charge])
