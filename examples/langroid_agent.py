"""my-agent: an agent of Langroid whose tools ask before they run.

Its model needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server with OpenAI's API. It calls a tool when you say so:

    call publish {"text": "hello"}
"""

from langroid import ChatAgent, ChatAgentConfig
from langroid.language_models import OpenAIGPTConfig

from agui_container import tool


@tool
def publish(text: str) -> str:
    """Publish a text. The model reads this sentence: say here what your tool does.

    Args:
        text: what to publish
    """
    return f"Done: {text}"


# Langroid has no approvals, so these are tools of the server: agui.toml names them, and the policy that asks.
tools = [publish]
agent = ChatAgent(
    ChatAgentConfig(llm=OpenAIGPTConfig(chat_model="gpt-4o"), system_message="You are brief and helpful.")
)
