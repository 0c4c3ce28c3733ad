"""The agents of the table of cases as OpenAI's Agents SDK has them. They run in an environment of their own."""

from agents import Agent, OpenAIChatCompletionsModel, function_tool
from openai import AsyncOpenAI

from tests.agents.frameworks.dice import charge, roll, stumble

TOOLS = [function_tool(roll), function_tool(stumble), function_tool(needs_approval=True)(charge)]
agent = Agent(name="dice", model="scripted", tools=TOOLS)
chat = Agent(name="dice", model=OpenAIChatCompletionsModel("scripted", AsyncOpenAI(max_retries=0)), tools=TOOLS)
