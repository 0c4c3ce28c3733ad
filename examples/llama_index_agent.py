"""my-agent: an agent of LlamaIndex whose tools ask before they run.

Its model needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server with OpenAI's API. It calls a tool when you say so:

    call publish {"text": "hello"}
"""

import os

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI

from agui_container import tool


@tool
def publish(text: str) -> str:
    """Publish a text. The model reads this sentence: say here what your tool does.

    Args:
        text: what to publish
    """
    return f"Done: {text}"


# LlamaIndex has no approvals, so these are tools of the server: agui.toml names them, and the policy that asks.
tools = [publish]
model = OpenAI(model="gpt-4o", api_base=os.environ.get("OPENAI_BASE_URL"))
agent = FunctionAgent(llm=model, system_prompt="You are brief and helpful.")
