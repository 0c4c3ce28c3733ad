"""Tools: functions that the server runs for a model.

Rule: a tool knows no agent, engine or transport, and raises ``ToolError`` with a text that the model
may read and correct.
"""

from typing import TYPE_CHECKING

from agui_container.imports import lazy_attributes

__all__ = [
    "HttpServer",
    "StdioServer",
    "ToolPolicy",
    "builtin_tools",
    "mcp_sources",
]

if TYPE_CHECKING:
    from agui_container.tools.builtin import builtin_tools
    from agui_container.tools.mcp import mcp_sources
    from agui_container.tools.mcp.servers import HttpServer, StdioServer
    from agui_container.tools.policy import ToolPolicy
else:
    __getattr__ = lazy_attributes(
        __name__,
        {
            "HttpServer": "tools.mcp.servers",
            "StdioServer": "tools.mcp.servers",
            "ToolPolicy": "tools.policy",
            "builtin_tools": "tools.builtin",
            "mcp_sources": "tools.mcp",
        },
    )


def __dir__() -> list[str]:
    return sorted(__all__)
