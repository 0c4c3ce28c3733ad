"""The agents of the table of cases as Google's ADK has them. They run in an environment of their own."""

from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool

from tests.agents.frameworks.dice import charge, roll, stumble

agent = LlmAgent(
    name="dice", model="gemini-scripted", tools=[roll, stumble, FunctionTool(charge, require_confirmation=True)]
)
