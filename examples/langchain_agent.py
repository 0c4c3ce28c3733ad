"""my-agent: an agent of LangChain whose tools ask before they run.

Its model needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server with OpenAI's API. It calls a tool when you say so:

    call publish {"text": "hello"}
"""

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from agui_container import langchain_middleware


@tool
def publish(text: str) -> str:
    """Publish a text. The model reads this sentence: say here what your tool does."""
    return f"Done: {text}"


ASK = HumanInTheLoopMiddleware(interrupt_on=dict.fromkeys(["publish"], True))
# Questions are kept in the checkpointer. Name a database here before you serve with more than one process.
agent = create_agent(
    "openai:gpt-5-mini",
    tools=[publish],
    system_prompt="You are brief and helpful.",
    middleware=[langchain_middleware(), ASK],  # the first offers the tools of the client and of the server
    checkpointer=InMemorySaver(),
)
