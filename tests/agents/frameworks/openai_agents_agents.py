"""The agents of the table of cases as OpenAI's Agents SDK has them. They run in an environment of their own."""

from agents import Agent, OpenAIChatCompletionsModel, function_tool
from openai import AsyncOpenAI


@function_tool
def roll(sides: int) -> str:
    """Roll a die."""
    return f"rolled {sides}"


@function_tool
def stumble(sides: int) -> str:
    """Fail."""
    raise RuntimeError(f"secret {sides}")


@function_tool(needs_approval=True)
def charge(sides: int) -> str:
    """Charge."""
    return f"charged {sides}"


TOOLS = [roll, stumble, charge]
agent = Agent(name="dice", model="scripted", tools=TOOLS)
chat = Agent(name="dice", model=OpenAIChatCompletionsModel("scripted", AsyncOpenAI(max_retries=0)), tools=TOOLS)
