"""A server of the package fastmcp, ``python fastmcp_shop.py [PORT]``: over HTTP with a port, else as a process."""
# mypy: ignore-errors

import sys

from fastmcp import Context, FastMCP
from pydantic import BaseModel

server = FastMCP("shop", instructions="Buy here.")


class Size(BaseModel):
    """Answer to a question."""

    size: int


@server.tool
async def buy(ctx: Context) -> str:
    """Ask within the call."""
    answer = await ctx.elicit("Which size?", Size)
    return str(answer.data.size) if answer.action == "accept" else answer.action


@server.tool
async def grow() -> str:
    """Add a tool."""

    @server.tool
    def grown() -> str:
        """Be new."""
        return "new"

    return "grown"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(transport="http", port=int(sys.argv[1]), show_banner=False)
    else:
        server.run(show_banner=False)
