"""The agents of the table of cases as Google's ADK has them. They run in an environment of their own."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ag_ui.core import BaseEvent, RunAgentInput
from ag_ui_adk import ADKAgent, AGUIToolset
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool

from tests.agents.frameworks.dice import charge, filled, roll, stumble

agent = LlmAgent(
    name="dice", model="gemini-scripted", tools=[roll, stumble, FunctionTool(charge, require_confirmation=True)]
)
with_toolset = agent.clone(update={"tools": [*agent.tools, AGUIToolset()]})
adapter = ADKAgent(adk_agent=with_toolset, app_name="dice", user_id="ada", emit_interrupt_outcome=True)


async def bare(input: RunAgentInput) -> AsyncGenerator[BaseEvent, None]:
    async with aclosing(adapter.run(filled(input).model_copy(update={"tools": input.tools}))) as events:
        async for event in events:
            yield event
