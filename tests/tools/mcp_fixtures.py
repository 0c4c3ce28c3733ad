"""A source of tools and the MCP server behind it, over HTTP, which can be stopped and started again."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agui_container.ports import RunContext, Tool, ToolContent
from agui_container.tools.mcp.servers import HttpServer, StdioServer
from agui_container.tools.mcp.source import McpSource
from tests.contexts import run_context
from tests.tools.mcp_demo import Demo, old_server, serve_app

WAIT = 120.0
SCRIPT = StdioServer(
    name="demo", command=sys.executable, args=(str(Path(__file__).with_name("mcp_process.py")),), tool_prefix=""
)


class Time:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds


@dataclass
class Rig:
    """A source and its server, which can be stopped and started again."""

    source: McpSource
    demo: Demo
    port: int = 0
    legacy: bool = False
    time: Time = field(default_factory=Time)
    running: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self) -> None:
        app = self.demo.server.streamable_http_app()
        self.port = await self.running.enter_async_context(
            serve_app(old_server(app) if self.legacy else app, self.port)
        )

    async def subscribed(self) -> None:
        await asyncio.wait_for(self.demo.subscriptions.began.wait(), WAIT)

    async def restart(self) -> None:
        """Another process at the same address: it knows nothing of the first one's sessions."""
        await self.running.aclose()
        self.demo = Demo()
        await self.start()

    async def tools(self, ctx: RunContext | None = None) -> dict[str, Tool]:
        return {tool.spec.name: tool for tool in await self.source.tools(ctx or run_context())}

    async def call(self, name: str, arguments: Mapping[str, object] | None = None) -> ToolContent:
        tool = (await self.tools())[f"demo_{name}"]
        return await tool.call(arguments or {}, run_context())


@asynccontextmanager
async def rigged(*, legacy: bool = False, **settings: object) -> AsyncIterator[Rig]:
    time, demo = Time(), Demo()
    app = demo.server.streamable_http_app()
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serve_app(old_server(app) if legacy else app))
        server = HttpServer.model_validate({"name": "demo", "url": f"http://127.0.0.1:{port}/mcp", **settings})
        rig = Rig(McpSource(server, time), demo, port, legacy, time, stack.pop_all())
        try:
            yield rig
        finally:
            await rig.source.aclose()
            await rig.running.aclose()
