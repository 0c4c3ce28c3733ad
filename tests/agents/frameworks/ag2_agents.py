"""The agents of the table of cases as AG2 has them. They run in an environment of their own."""

from collections.abc import AsyncGenerator

from ag2 import Agent, tool
from ag2.ag_ui import AGUIStream
from ag2.config import OpenAIConfig
from ag2.middleware import approval_required
from ag_ui.core import BaseEvent, RunAgentInput

from agui_container.agents.frameworks.ag2 import events_in
from tests.agents.frameworks.dice import charge, roll, stumble

TOOLS = [tool(roll), tool(stumble), tool(middleware=[approval_required()])(charge)]
config = OpenAIConfig(model="scripted", streaming=True, max_retries=0)
agent = Agent("dice", config=config, tools=TOOLS)


async def bare(input: RunAgentInput) -> AsyncGenerator[BaseEvent, None]:
    async for frame in AGUIStream(agent).dispatch(input.model_copy(update={"protocol_version": "1.0"})):
        for event in events_in(frame):
            yield event
