"""A real MCP server with one tool for each thing that matters: over HTTP in the test's loop, or a process of its own.

The process is ``python -m tests.tools.mcp_demo``.
"""

import asyncio
import base64
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn
from mcp import MCPError
from mcp.server.mcpserver import Audio, Context, Image, MCPServer
from mcp.server.subscriptions import InMemorySubscriptionBus, ServerEvent
from mcp_types import (
    CONNECTION_CLOSED,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.engine.doubles import eventually


class Subscriptions(InMemorySubscriptionBus):
    """The subscriptions of clients to changes."""

    def __init__(self) -> None:
        super().__init__()
        self.began = asyncio.Event()

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        self.began.set()
        return super().subscribe(listener)


class Demo:
    """The server, and what its tools were told."""

    def __init__(self) -> None:
        self.subscriptions = Subscriptions()
        self.server = MCPServer("demo", log_level="CRITICAL", subscriptions=self.subscriptions)
        self.began = asyncio.Event()
        self.stopped = asyncio.Event()
        self.go_on = asyncio.Event()
        self.calls: list[str] = []
        for tool in (self.add, self.fail, self.picture, self.mixed, self.file, self.wait, self.grow, self.die):
            self.server.add_tool(tool)
        self.server.add_tool(self.nothing, structured_output=False)
        self.server.add_tool(self.progress)
        self.server.add_tool(self.refuse)

    async def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        self.calls.append("add")
        return a + b

    async def fail(self) -> CallToolResult:
        return CallToolResult(content=[TextContent(text="No such city.")], is_error=True)

    async def refuse(self) -> None:
        self.calls.append("refuse")
        raise MCPError(CONNECTION_CLOSED, "The quota is used up.")

    async def picture(self) -> Image:
        return Image(data=b"pixels", format="png")

    async def mixed(self) -> CallToolResult:
        return CallToolResult(
            content=[
                TextContent(text="Listen:"),
                Audio(data=b"sound", format="wav").to_audio_content(),
                ResourceLink(name="report", uri="https://example.com/r", description="All of it"),
            ]
        )

    async def file(self) -> CallToolResult:
        blob = base64.b64encode(b"%PDF").decode()
        contents = BlobResourceContents(uri="file:///r.pdf", blob=blob, mime_type="application/pdf")
        return CallToolResult(content=[EmbeddedResource(resource=contents)])

    async def nothing(self) -> CallToolResult:
        return CallToolResult(content=[], structured_content={"a": 1})

    async def wait(self) -> str:
        """Wait until it is told to go on, or to stop."""
        self.calls.append("wait")
        self.began.set()
        try:
            await self.go_on.wait()
        finally:
            self.stopped.set()
        return "went on"

    async def progress(self, ctx: Context) -> str:
        """Tell of progress for longer than the client would wait in silence."""
        for step in range(60):
            await ctx.report_progress(step, 60)
            await asyncio.sleep(0.05)
        return "arrived"

    async def grow(self, ctx: Context) -> str:
        """Get another tool."""
        self.server.add_tool(self.grown)
        await ctx.notify_tools_changed()  # for clients of today
        await ctx.session.send_tool_list_changed()  # and of before
        return "grown"

    async def grown(self) -> str:
        return "new"

    async def die(self) -> str:
        os._exit(3)


@asynccontextmanager
async def serve_app(app: ASGIApp, port: int = 0) -> AsyncIterator[int]:
    """Serve over HTTP until the block ends; gives the port. It ends as a crash does: connections are cut."""
    config = uvicorn.Config(app, log_config=None, access_log=False, ws="none")
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.lifespan.startup()
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    await server.startup([listener])
    try:
        yield listener.getsockname()[1]
    finally:
        for listening in server.servers:
            listening.close()
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        await server.lifespan.shutdown()
        await eventually(lambda: not server.server_state.tasks)
        listener.close()


def old_server(app: ASGIApp) -> ASGIApp:
    """Return a server from before 2026-07-28, with sessions and without ``server/discover``."""
    return refuse_method(app, "server/discover", 400)


def refuse_method(app: ASGIApp, method: str, status: int | None) -> ASGIApp:
    """Return a server that answers one method with a status and nothing else, or not at all."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            return await app(scope, receive, send)
        body = await _body(receive)
        if f'"{method}"'.encode() in body:
            if status is None:
                await receive()  # until the client hangs up
                return None
            await send({"type": "http.response.start", "status": status, "headers": []})
            return await send({"type": "http.response.body", "body": b""})
        read = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def again() -> Message:
            return next(read, None) or await receive()

        return await app(scope, again, send)

    return answer


async def _body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


if __name__ == "__main__":
    Demo().server.run()
