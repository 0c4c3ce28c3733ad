"""The agents of the table of cases as Agno has them. They run in Agno's own environment."""

from collections.abc import AsyncGenerator

from ag_ui.core import BaseEvent, RunAgentInput
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.openai import OpenAIChat
from agno.os.interfaces.agui.router import run_entity
from agno.team import Team
from agno.tools import tool

from tests.agents.frameworks.dice import charge, roll, stumble


def model() -> OpenAIChat:
    return OpenAIChat(id="scripted", max_retries=0)


TOOLS = [roll, stumble, tool(requires_confirmation=True)(charge)]
agent = Agent(model=model(), tools=TOOLS)
stored = Agent(model=model(), tools=TOOLS, db=InMemoryDb(), add_history_to_context=True)
team = Team(members=[], model=model(), tools=TOOLS)


async def bare(input: RunAgentInput) -> AsyncGenerator[BaseEvent, None]:
    async for event in run_entity(agent, input):
        yield event
