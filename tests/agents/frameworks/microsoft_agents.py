"""The agents of the table of cases as Microsoft's Agent Framework has them. They run in an environment of their own."""

from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatClient

from tests.agents.frameworks.dice import charge, roll, stumble

TOOLS = [
    tool(approval_mode="never_require")(roll),
    tool(approval_mode="never_require")(stumble),
    tool(approval_mode="always_require")(charge),
]
agent = Agent(OpenAIChatClient("scripted"), name="dice", tools=TOOLS)
