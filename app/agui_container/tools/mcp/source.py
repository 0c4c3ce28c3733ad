"""The tools of one MCP server, as a source of tools.

Rules:
- Runs with equal headers share one session and one list of tools, so a token never reaches a request of another
  caller. The number of sessions is bounded: the least recently used one without a call is closed.
- A list is kept while the server reports changes, else until a call and for the time that the server names, and never
  longer than ``MAX_AGE``.
- After a failure nothing is asked for as long as the attempt took. Runs that waited for a silent server therefore do
  not wait for it again, one after the other.
- A request is sent again once, in a new session, if the server has not processed it or if it changes nothing.

Source: "Tools" and "Caching" in the Model Context Protocol specification.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeVar

from ag_ui.core import Tool as ToolSpec
from mcp import Client, MCPError
from mcp_types import ReadResourceResult
from mcp_types import Tool as McpToolSpec
from pydantic import ValidationError

from agui_container.log_values import format_fields
from agui_container.ports import RunContext, ToolError
from agui_container.tools.mcp.apps import AppFacts, result_for_app
from agui_container.tools.mcp.connection import McpConnection, Send, SessionLost
from agui_container.tools.mcp.headers import caller_headers
from agui_container.tools.mcp.open_call import OpenCall
from agui_container.tools.mcp.servers import HttpServer, Server
from agui_container.tools.mcp.tool import McpTool

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_SESSIONS = 100
"""Maximum number of sessions of one server."""

MAX_AGE = 300.0
"""Seconds after which the tools are listed again."""

MAX_INSTRUCTIONS = 4_000
"""Characters of a server's instructions that reach the model."""

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class McpSource:
    """Implements ``ports.ToolSource``. Raises ``McpConfigError`` for a function that cannot be imported."""

    def __init__(self, server: Server, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.server = server
        self._make_headers = caller_headers(server)
        self._monotonic = monotonic
        self._offers: dict[tuple[tuple[str, str], ...], ServerTools] = {}
        self._waiting: dict[str, OpenCall] = {}

    @property
    def name(self) -> str:
        return self.server.name

    async def tools(self, ctx: RunContext) -> Sequence[McpTool]:
        return [tool for tool in await self._all_tools(ctx) if tool.app.for_model]

    async def tool_for_app(self, name: str, ctx: RunContext) -> McpTool:
        """Return a tool by its name at the server. Raises ``ToolError`` if apps have no such tool."""
        for tool in await self._all_tools(ctx):
            if tool.remote_name == name and tool.app.for_apps:
                return tool
        raise ToolError(f"Apps of '{self.name}' have no tool named '{name[:64]}'.")

    async def read_resource(self, uri: str, ctx: RunContext) -> Mapping[str, object]:
        """Return a page that a listed tool names. Raises ``ToolError``."""
        if uri not in {tool.app.resource_uri for tool in await self._all_tools(ctx)}:
            raise ToolError(f"No tool of '{self.name}' names this resource.")

        async def read(client: Client) -> ReadResourceResult:
            async with asyncio.timeout(self.server.timeout):
                return await client.read_resource(uri)

        tools = self.tools_for(await self._make_headers(ctx))
        try:
            return result_for_app(await tools.request(read, is_repeatable=True))
        except (MCPError, TimeoutError, ValidationError) as error:
            ctx.logger.warning("MCP app not read %s", format_fields({"server": self.name}), exc_info=error)
            raise ToolError(f"The MCP server '{self.name}' could not give this resource.") from error

    async def _all_tools(self, ctx: RunContext) -> Sequence[McpTool]:
        return await self.tools_for(await self._make_headers(ctx)).get()

    async def aclose(self) -> None:
        while self._offers:
            _, tools = self._offers.popitem()
            connection = tools.close()
            if connection is not None:
                await connection.ended()

    def tools_for(self, headers: Mapping[str, str] = NO_HEADERS) -> "ServerTools":
        """Return the tools for callers with these headers."""
        key, server = tuple(sorted(headers.items())), self.server
        if isinstance(server, HttpServer):
            server = server.model_copy(update={"headers": {**server.headers, **headers}})
        found = self._offers.pop(key, None) or ServerTools(server, self._monotonic, self._waiting)
        if len(self._offers) >= MAX_SESSIONS:
            unused = next((key for key, each in self._offers.items() if not each.has_calls), None)
            if unused is not None:
                self._offers.pop(unused).close()
        self._offers[key] = found  # the most recently used one is the last
        return found


class ServerTools:
    """The tools that a server offers to callers with equal headers, and its session for them."""

    def __init__(self, server: Server, monotonic: Callable[[], float], waiting: dict[str, OpenCall]) -> None:
        self._server = server
        self._monotonic = monotonic
        self._waiting = waiting
        self._connection: McpConnection | None = None
        self._tools: Sequence[McpTool] = ()
        self._expires_at = -math.inf
        self._failure = ""
        self._retry_at = -math.inf
        self._lock = asyncio.Lock()
        self._left_out: Sequence[str] = ()

    @property
    def has_calls(self) -> bool:
        return self._connection is not None and bool(self._connection.calls)

    @property
    def connection(self) -> McpConnection:
        """The session. Another one is opened if it has ended."""
        if self._connection is None or self._connection.has_ended:
            self._connection = McpConnection(self._server)
        return self._connection

    async def get(self) -> Sequence[McpTool]:
        """Raise ``ToolError`` if the server cannot be reached or cannot list its tools."""
        async with self._lock:
            began = self._monotonic()
            if began < self._retry_at:
                raise ToolError(self._failure)
            connection = self.connection
            if connection.is_stale or began >= self._expires_at:
                connection.is_stale, self._expires_at = False, -math.inf
                try:
                    self._tools, self._expires_at = await self._list()
                except ToolError as error:
                    self._failure, self._retry_at = str(error), 2 * self._monotonic() - began
                    raise
            return self._tools

    async def request(self, send: Send[T], *, is_repeatable: bool = False, call: OpenCall | None = None) -> T:
        """Send a request. It is ``is_repeatable`` if the server may process it twice. Raises as a connection does."""
        try:
            return await self.connection.request(send, call)
        except SessionLost as lost:
            if lost.is_processed and not is_repeatable:
                raise
        return await self.connection.request(send, call)

    def close(self) -> McpConnection | None:
        """Close the session. The next request opens another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        return connection

    async def _list(self) -> tuple[Sequence[McpTool], float]:
        """Return the tools of all pages, and the time until which they are kept."""
        now, name = self._monotonic(), self._server.name
        try:
            tools, seconds = await self.request(self._read_pages, is_repeatable=True)
        except TimeoutError as error:
            self.close()
            raise ToolError(f"The MCP server '{name}' did not answer in time.") from error
        except (MCPError, ValidationError) as error:
            logger.warning("MCP tools could not be listed %s", format_fields({"server": name}), exc_info=error)
            raise ToolError(f"The MCP server '{name}' could not list its tools.") from error
        return tools, now + seconds

    async def _read_pages(self, client: Client) -> tuple[Sequence[McpTool], float]:
        tools, cursor, seconds = list[McpToolSpec](), None, MAX_AGE
        async with asyncio.timeout(self._server.connect_timeout):
            while True:
                page = await client.list_tools(cursor=cursor)
                tools += page.tools
                if "ttl_ms" in page.model_fields_set and not self.connection.reports_changes:
                    seconds = min(seconds, page.ttl_ms / 1000)
                cursor = page.next_cursor
                if not cursor:
                    break
        text = (client.instructions or "").strip()[:MAX_INSTRUCTIONS] if self._server.instructions else ""
        return [self._tool(each, text) for each in self._callable(tools)], seconds

    def _callable(self, tools: Sequence[McpToolSpec]) -> Sequence[McpToolSpec]:
        """Return the tools without those that only run as tasks, which would refuse every call."""
        tasks = [tool.name for tool in tools if tool.execution and tool.execution.task_support == "required"]
        if tasks and tasks != self._left_out:
            fields = {"server": self._server.name, "tools": ", ".join(tasks)}
            logger.warning("MCP tools left out, because they only run as tasks %s", format_fields(fields))
        self._left_out = tasks
        return [tool for tool in tools if tool.name not in tasks]

    def _tool(self, tool: McpToolSpec, instructions: str) -> McpTool:
        name, description = f"{self._server.prefix}{tool.name}", tool.description or tool.title or tool.name
        spec = ToolSpec(name=name, description=description, parameters=tool.input_schema)
        facts = AppFacts.of(tool)
        return McpTool(spec, tool.name, self._server, self.request, self._waiting, facts, instructions)
