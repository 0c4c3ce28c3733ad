"""Tools of MCP servers, through the official ``mcp`` package.

Rule: nothing here imports that package before a server is configured, and nothing is started, connected or listed
before a run asks: AgentCore restores snapshots of started processes.
"""

from collections.abc import Sequence

from agui_container.ports import ToolSource
from agui_container.tools.mcp.servers import McpConfigError, Server, parse_servers

__all__ = ["McpConfigError", "mcp_sources", "parse_servers"]


def mcp_sources(servers: Sequence[Server]) -> tuple[ToolSource, ...]:
    """One source of tools for each server."""
    if not servers:
        return ()
    from agui_container.tools.mcp.source import McpSource  # noqa: PLC0415 - half a second, for those who use it

    return tuple(McpSource(server) for server in servers)
