"""my-agent: an agent of AG2 whose tools ask before they run.

Its model needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server with OpenAI's API. It calls a tool when you say so:

    call publish {"text": "hello"}
"""

from ag2 import Agent, tool
from ag2.config import OpenAIConfig
from ag2.middleware import approval_required


@tool(middleware=[approval_required()])
def publish(text: str) -> str:
    """Publish a text. The model reads this sentence: say here what your tool does."""
    return f"Done: {text}"


agent = Agent(
    "agent",
    "You are brief and helpful.",
    config=OpenAIConfig(model="gpt-5-mini", streaming=True),
    tools=[publish],
)
