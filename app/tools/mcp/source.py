"""The tools of one MCP server.

Rule: the list is kept until the server says that it changed, until it is old, or until the clocks say that this process
was asleep: nothing that was learnt before a snapshot is believed after it.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from ag_ui.core import Tool as ToolSpec
from mcp import Client, MCPError
from mcp_types import CallToolResult
from mcp_types import Tool as McpToolSpec
from msgspec import Struct

from app.ports import RunContext, Tool, ToolContent, ToolError
from app.tools.mcp.connection import Connection, is_cut_off
from app.tools.mcp.results import content_of
from app.tools.mcp.servers import Server

logger = logging.getLogger(__name__)

Request = Callable[[Client], Awaitable[CallToolResult]]

MAX_TOOLS = 512
"""More than any model can choose from. The rest is left out, and the log says so."""

MAX_AGE = 300.0
"""Seconds after which a list is asked for again, for servers that do not tell of changes."""

MAX_JUMP = 5.0
"""Seconds that the wall clock may gain on the steady one. After a restored snapshot it is minutes or more."""


class Clocks(NamedTuple):
    """The wall clock and the steady clock, so that tests can own them."""

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic


class Listing(Struct, frozen=True):
    """The tools a server had, and when both clocks said it was."""

    tools: tuple[Tool, ...]
    wall: float
    steady: float


class McpSource:
    """Implements ``ports.ToolSource``."""

    def __init__(self, server: Server, clocks: Clocks | None = None) -> None:
        self._server = server
        self._clocks = clocks or Clocks()
        self._connection = Connection(server, self._changed)
        self._listing: Listing | None = None
        self._changes = 0
        self._one_at_a_time = asyncio.Lock()

    @property
    def name(self) -> str:
        """The server's name in the configuration."""
        return self._server.name

    async def tools(self, ctx: RunContext) -> Sequence[Tool]:  # noqa: ARG002 - headers are the same for every caller
        """The server's tools, under their prefixed names.

        Raises:
            ToolError: the server cannot be reached or will not say.
        """
        self._distrust()
        async with self._one_at_a_time:
            return self._listing.tools if self._listing else await self._list()

    async def aclose(self) -> None:
        """Close the session; a process that we started is ended."""
        self._changed()
        await self._connection.aclose()

    def _changed(self) -> None:
        self._changes += 1
        self._listing = None

    def _distrust(self) -> None:
        if self._listing is None:
            return
        age, steady_age = self._clocks.wall() - self._listing.wall, self._clocks.steady() - self._listing.steady
        if abs(age - steady_age) > MAX_JUMP:
            self._connection.drop()
            self._changed()
        elif age > MAX_AGE:
            self._changed()

    async def _list(self) -> Sequence[Tool]:
        changes, wall, steady = self._changes, self._clocks.wall(), self._clocks.steady()
        try:
            found = await self._connection.request(self._pages, repeatable=True)
        except TimeoutError as error:
            self._connection.rest()
            raise ToolError(f"The MCP server '{self.name}' did not answer in time.") from error
        except MCPError as error:
            logger.warning("server=<%s> | its tools could not be listed", self.name, exc_info=error)
            raise ToolError(f"The MCP server '{self.name}' could not list its tools.") from error
        tools = tuple(McpTool(self._spec(tool), tool.name, self._server, self._connection) for tool in found)
        if changes == self._changes:
            self._listing = Listing(tools, wall, steady)
        return tools

    async def _pages(self, client: Client) -> list[McpToolSpec]:
        async with asyncio.timeout(self._server.connect_timeout):
            return await self._all(client)

    async def _all(self, client: Client) -> list[McpToolSpec]:
        found: list[McpToolSpec] = []
        cursor: str | None = None
        while True:
            page = await client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if len(found) > MAX_TOOLS or (cursor is not None and not page.tools):
                text = "server=<%s> | it lists more tools than are used: the first %d are"
                logger.warning(text, self.name, min(len(found), MAX_TOOLS))
                return found[:MAX_TOOLS]
            if cursor is None:
                return found

    def _spec(self, tool: McpToolSpec) -> ToolSpec:
        return ToolSpec(
            name=f"{self._server.prefix}{tool.name}",
            description=tool.description or tool.title or tool.name,
            parameters=tool.input_schema,
        )


class McpTool(Struct, frozen=True):
    """Implements ``ports.Tool``: one tool of a server, which knows it as ``remote_name``."""

    spec: ToolSpec
    remote_name: str
    server: Server
    connection: Connection

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> ToolContent:  # noqa: ARG002 - as for tools
        """Run it at the server. Cancelling this tells the server to stop."""
        limit = asyncio.timeout(self.server.timeout)
        try:
            async with limit:
                result = await self.connection.request(self._request(arguments, limit), repeatable=False)
        except TimeoutError as error:
            if not limit.expired():
                raise
            text = f"{self.spec.name} gave no sign of life for {self.server.timeout:g} seconds."
            raise ToolError(text) from error
        except MCPError as error:
            raise ToolError(self._said(error)) from error
        return content_of(result)

    def _request(self, arguments: Mapping[str, object], limit: asyncio.Timeout) -> Request:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
            with contextlib.suppress(RuntimeError):  # the call has just ended
                limit.reschedule(asyncio.get_running_loop().time() + self.server.timeout)

        return lambda client: client.call_tool(self.remote_name, dict(arguments), progress_callback=on_progress)

    def _said(self, error: MCPError) -> str:
        if is_cut_off(error):
            return f"The MCP server '{self.server.name}' went away; the call may or may not have been carried out."
        return error.message
