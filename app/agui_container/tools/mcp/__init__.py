"""Tools of MCP servers, through the official ``mcp`` package.

Rule: the package is imported only if a server is configured. No process is started, connection opened or tool listed
before a run needs it, because AgentCore restores snapshots of started processes.

Source: the Model Context Protocol specification.
"""

from collections.abc import Sequence

from agui_container.ports import ToolSource
from agui_container.tools.mcp.servers import McpConfigError, Server, parse_servers

__all__ = ["McpConfigError", "mcp_sources", "parse_servers"]


def mcp_sources(servers: Sequence[Server]) -> tuple[ToolSource, ...]:
    """Return one tool source for each server. Raises ``McpConfigError`` for a function that cannot be imported."""
    if not servers:
        return ()
    from agui_container.tools.mcp.source import McpSource  # noqa: PLC0415 - a slow import

    return tuple(McpSource(server) for server in servers)
