"""my-agent: an agent of Microsoft's Agent Framework whose tools ask before they run.

Its model needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server with OpenAI's API. It calls a tool when you say so:

    call publish {"text": "hello"}
"""

from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatClient


@tool(approval_mode="always_require")
def publish(text: str) -> str:
    """Publish a text. The model reads this sentence: say here what your tool does."""
    return f"Done: {text}"


agent = Agent(OpenAIChatClient("gpt-5-mini"), "You are brief and helpful.", name="agent", tools=[publish])
