"""my-agent: an agent of the Claude Agent SDK whose tools ask before they run.

Its model needs ANTHROPIC_API_KEY. It calls a tool when you say so:

    call publish {"text": "hello"}
"""

from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, tool


@tool("publish", "Publish a text. The model reads this sentence: say here what your tool does.", {"text": str})
async def publish(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"Done: {arguments['text']}"}]}


tools = create_sdk_mcp_server("tools", tools=[publish])
agent = ClaudeAgentOptions(
    system_prompt="You are brief and helpful.", tools=[], mcp_servers={"tools": tools}, setting_sources=[]
)
