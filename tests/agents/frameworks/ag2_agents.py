"""The agents of the table of cases as AG2 has them. They run in an environment of their own."""

from ag2 import Agent, tool
from ag2.config import OpenAIConfig
from ag2.middleware import approval_required

from tests.agents.frameworks.dice import charge, roll, stumble

TOOLS = [tool(roll), tool(stumble), tool(middleware=[approval_required()])(charge)]
config = OpenAIConfig(model="scripted", streaming=True, max_retries=0)
agent = Agent("dice", config=config, tools=TOOLS)
