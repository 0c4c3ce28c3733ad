"""The agents of the table of cases as Google's ADK has them. They run in an environment of their own."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ag_ui.core import BaseEvent, RunAgentInput
from ag_ui_adk import ADKAgent
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool

from tests.agents.frameworks.dice import charge, filled, roll, stumble

agent = LlmAgent(
    name="dice", model="gemini-scripted", tools=[roll, stumble, FunctionTool(charge, require_confirmation=True)]
)
adapter = ADKAgent(adk_agent=agent, app_name="dice", user_id="ada", emit_interrupt_outcome=True)


async def bare(input: RunAgentInput) -> AsyncGenerator[BaseEvent, None]:
    async with aclosing(adapter.run(filled(input))) as events:
        async for event in events:
            yield event
