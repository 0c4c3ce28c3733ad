"""The agents of the table of cases as the Claude Agent SDK has them. They run in an environment of their own."""

from collections.abc import Callable
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, SdkMcpTool, create_sdk_mcp_server, tool

from tests.agents.frameworks.dice import charge, roll, stumble


def sdk_tool(function: Callable[..., str]) -> SdkMcpTool[Any]:
    async def run(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": function(**arguments)}]}

    return tool(function.__name__, function.__doc__ or "", {"sides": int})(run)


DICE = create_sdk_mcp_server("dice", tools=[sdk_tool(each) for each in (roll, stumble, charge)])
agent = ClaudeAgentOptions(mcp_servers={"dice": DICE}, allowed_tools=["mcp__dice__roll", "mcp__dice__stumble"])
