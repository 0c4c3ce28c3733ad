"""my-agent: an agent of OpenAI's Agents SDK whose tools ask before they run.

Its model needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server with OpenAI's API. It calls a tool when you say so:

    call publish {"text": "hello"}
"""

from agents import Agent, function_tool


@function_tool(needs_approval=True)
def publish(text: str) -> str:
    """Publish a text. The model reads this sentence: say here what your tool does."""
    return f"Done: {text}"


agent = Agent(name="agent", model="gpt-5-mini", instructions="You are brief and helpful.", tools=[publish])
