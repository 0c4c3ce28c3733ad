"""my-agent: an agent of Google's ADK whose tools ask before they run.

Its model needs GOOGLE_API_KEY, or Vertex AI as ADK's own documentation has it. It calls a tool when you say so:

    call publish {"text": "hello"}
"""

from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool


def publish(text: str) -> str:
    """Publish a text. The model reads this sentence: say here what your tool does."""
    return f"Done: {text}"


agent = LlmAgent(
    name="agent",
    model="gemini-3-flash",
    instruction="You are brief and helpful.",
    tools=[FunctionTool(tool, require_confirmation=True) for tool in [publish]],
)
