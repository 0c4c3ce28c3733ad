"""The agents of the table of cases as Agno has them. They run in Agno's own environment."""

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.openai import OpenAIChat
from agno.team import Team
from agno.tools import tool

from tests.agents.frameworks.dice import charge, roll, stumble


def model() -> OpenAIChat:
    return OpenAIChat(id="scripted", max_retries=0)


TOOLS = [roll, stumble, tool(requires_confirmation=True)(charge)]
agent = Agent(model=model(), tools=TOOLS)
stored = Agent(model=model(), tools=TOOLS, db=InMemoryDb(), add_history_to_context=True)
team = Team(members=[], model=model(), tools=TOOLS)
