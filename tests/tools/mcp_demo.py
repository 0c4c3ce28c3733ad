"""A real MCP server with one tool for each thing that matters, over HTTP in the test's loop."""

import asyncio
import socket
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, Image, MCPServer, Resolve
from mcp.server.subscriptions import InMemorySubscriptionBus, ServerEvent
from mcp_types import CallToolResult, SamplingMessage, TextContent
from pydantic import BaseModel
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.engine.doubles import eventually


class Subscriptions(InMemorySubscriptionBus):
    def __init__(self) -> None:
        super().__init__()
        self.began = asyncio.Event()

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        self.began.set()
        return super().subscribe(listener)


class Size(BaseModel):
    """Answer to a question."""

    size: int


def ask_size() -> Elicit[Size]:
    return Elicit("Which size?", Size)


def ask_colour() -> Elicit[Size]:
    return Elicit("And for the other one?", Size)


class Demo:
    """The server, and what its tools were told."""

    def __init__(self) -> None:
        self.subscriptions = Subscriptions()
        self.server = MCPServer(
            "demo", instructions="Add first.", log_level="CRITICAL", subscriptions=self.subscriptions
        )
        self.began = asyncio.Event()
        self.stopped = asyncio.Event()
        self.go_on = asyncio.Event()
        self.calls: list[str] = []
        for tool in (self.add, self.fail, self.picture, self.wait, self.grow, self.progress):
            self.server.add_tool(tool)
        for asking in (self.buy, self.book, self.sample):
            self.server.add_tool(asking)

    async def buy(self, ctx: Context) -> str:
        """Ask within the call."""
        answer = await ctx.elicit("Which size?", Size)
        self.calls.append("buy")
        return str(answer.data.size) if answer.action == "accept" else answer.action

    async def sample(self, ctx: Context) -> str:
        """Ask for a model within the call."""
        hello = SamplingMessage(role="user", content=TextContent(type="text", text="hello"))
        with warnings.catch_warnings(action="ignore"):  # servers of today use it, though the package advises against it
            return str(await ctx.session.create_message(messages=[hello], max_tokens=1))

    async def book(
        self,
        name: str,
        one: Annotated[ElicitationResult[Size], Resolve(ask_size)],
        other: Annotated[ElicitationResult[Size], Resolve(ask_colour)],
    ) -> str:
        """Return questions in place of a result."""
        self.calls.append("book")
        said = [str(each.data.size) if each.action == "accept" else each.action for each in (one, other)]
        return " ".join((name, *said))

    async def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        self.calls.append("add")
        return a + b

    async def fail(self) -> CallToolResult:
        return CallToolResult(content=[TextContent(text="No such city.")], is_error=True)

    async def picture(self) -> Image:
        return Image(data=b"pixels", format="png")

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
        """Tell of progress."""
        for step in range(3):
            await ctx.report_progress(step, 3, f"step {step}")
        return "arrived"

    async def grow(self, ctx: Context) -> str:
        """Get another tool."""
        self.server.add_tool(self.grown)
        await ctx.notify_tools_changed()  # for clients of today
        await ctx.session.send_tool_list_changed()  # and of before
        return "grown"

    async def grown(self) -> str:
        return "new"


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

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            return await app(scope, receive, send)
        body = await _body(receive)
        if b'"server/discover"' in body:
            await send({"type": "http.response.start", "status": 400, "headers": []})
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
