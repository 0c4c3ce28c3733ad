"""my-agent: an Agno agent whose tools ask before they run.

Its model needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server with OpenAI's API. It calls a tool when you say so:

    call publish {"text": "hello"}
"""

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.tools import tool


@tool(requires_confirmation=True)
def publish(text: str) -> str:
    """Publish a text. The model reads this sentence: say here what your tool does."""
    return f"Done: {text}"


agent = Agent(model=OpenAIChat(id="gpt-5-mini"), instructions="You are brief and helpful.", tools=[publish])
