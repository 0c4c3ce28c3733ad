"""An MCP server to try the container with; it needs the ``mcp`` package.

    AGUI_MCP_SERVERS='[{"name": "shop", "command": ".venv/bin/python", "args": ["examples/mcp_server.py"]}]' make run

Say: call shop_price {"item": "tea"}
"""

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

PRICES = {"tea": 2.5, "cake": 4.0}

server = MCPServer("shop", log_level="WARNING")


@server.tool()
def price(item: str) -> float:
    """Tell what an item costs, in euros."""
    if item not in PRICES:
        raise ToolError(f"There is no {item} in this shop.")
    return PRICES[item]


if __name__ == "__main__":
    server.run()
