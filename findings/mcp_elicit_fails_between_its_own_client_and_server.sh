#!/usr/bin/env bash
# mcp 2.3.0 and fastmcp 4.2.3: a tool's `ctx.elicit()` fails for each package's own client, unless that asks for the older protocol.
#
# A client with its default `mode` agrees on protocol 2026-07-28 with a server of the same package. That version has no
# requests from server to client. `ctx.elicit()` is still there, gives no DeprecationWarning, and fails in one process too. In
# mcp an ExceptionGroup leaves the client's `async with`, in fastmcp the result is an error. A client with the mode "legacy"
# begins with `initialize` and gets the question. The callback for questions is accepted in both modes.
# Seen: default: 2026-07-28, NoBackChannelError and "unavailable on 2026-07-28 connections"; legacy: 2025-11-25, "Ada" twice.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check mcp==2.3.0 fastmcp==4.2.3 2>/dev/null
"$folder/venv/bin/python" -W error - <<'PYTHON'
import asyncio
import logging

import fastmcp
from mcp.client import Client
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import ElicitResult
from pydantic import BaseModel

logging.disable(logging.CRITICAL)


class Answer(BaseModel):
    name: str


async def ask(ctx: Context) -> str:
    return (await ctx.elicit("Your name?", Answer)).data.name


async def ask_with_fastmcp(ctx: fastmcp.Context) -> str:
    return (await ctx.elicit("Your name?", Answer)).data.name


async def by_mcp(**options) -> tuple[str, str]:
    async def answer(*_):
        return ElicitResult(action="accept", content={"name": "Ada"})

    server = MCPServer("server")
    server.tool(name="ask")(ask)
    version = ""
    try:
        async with Client(server, elicitation_callback=answer, **options) as client:
            version = client.protocol_version
            return version, (await client.call_tool("ask", {})).content[0].text
    except ExceptionGroup as error:
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        return version, type(error).__name__


async def by_fastmcp(**options) -> tuple[str, str]:
    async def answer(*_):
        return {"name": "Ada"}

    server = fastmcp.FastMCP("server")
    server.tool(ask_with_fastmcp)
    async with fastmcp.Client(server, elicitation_handler=answer, **options) as client:
        result = await client.call_tool("ask_with_fastmcp", {}, raise_on_error=False)
        return client.protocol_version, result.content[0].text


async def main() -> None:
    default = [await by_mcp(), await by_fastmcp()]
    legacy = [await by_mcp(mode="legacy"), await by_fastmcp(mode="legacy")]
    print("default:", default)
    print("legacy: ", legacy)
    assert [version for version, _ in default] == ["2026-07-28", "2026-07-28"]
    assert default[0][1] == "NoBackChannelError"
    assert "unavailable on 2026-07-28 connections" in default[1][1]
    assert legacy == [("2025-11-25", "Ada"), ("2025-11-25", "Ada")]


asyncio.run(main())
PYTHON
echo "as described"
