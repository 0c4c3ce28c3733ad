"""The tools of one MCP server, and the results of their calls.

Rules: the list of tools is cached until the server reports a change, until it is ``MAX_AGE`` old, or until the clocks
show that this process was suspended, because a list from before a snapshot may be outdated. Text of a result stays
text, and media become content parts. Links are described and never fetched, because a server must not choose the
addresses that this process connects to.

Source: "Tools" in the Model Context Protocol specification.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from ag_ui.core import AudioPart, ContentPart, DataSource, DocumentPart, ImagePart, TextPart, VideoPart
from ag_ui.core import Tool as ToolSpec
from mcp import Client, MCPError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from mcp_types import Tool as McpToolSpec
from msgspec import Struct
from pydantic import ValidationError

from agui_container.ports import RunContext, Tool, ToolContent, ToolError
from agui_container.runtime.log_values import format_fields
from agui_container.tools.mcp.faults import MAX_MESSAGE_BYTES, McpFault, fault_of
from agui_container.tools.mcp.messages import is_failed
from agui_container.tools.mcp.servers import Server
from agui_container.tools.mcp.session import McpConnection

MEDIA: dict[str, type[ImagePart] | type[AudioPart] | type[VideoPart]] = {
    "image": ImagePart,
    "audio": AudioPart,
    "video": VideoPart,
}
UNKNOWN = "application/octet-stream"

NO_REASON = "the tool gave no reason."


def content_of(result: CallToolResult) -> ToolContent:
    """Return the content of a result.

    Raises:
        ToolError: the tool reported an error; the text is the server's.
    """
    parts = [_part(block) for block in result.content]
    if is_failed(result):
        raise ToolError(_text(parts) or NO_REASON)
    return _text(parts) if all(isinstance(part, TextPart) for part in parts) else parts


def _text(parts: Sequence[ContentPart]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def _part(block: ContentBlock) -> ContentPart:
    match block:
        case TextContent(text=text):
            return TextPart(text=text)
        case ImageContent() | AudioContent():
            return _media(block.data, block.mime_type)
        case EmbeddedResource():
            return _file(block.resource)
        case ResourceLink():
            description = f": {block.description}" if block.description else ""
            return TextPart(text=f"[{block.title or block.name}]({block.uri}){description}")


def _file(contents: TextResourceContents | BlobResourceContents) -> ContentPart:
    if isinstance(contents, TextResourceContents):
        return TextPart(text=contents.text)
    return _media(contents.blob, contents.mime_type or UNKNOWN)


def _media(data: str, mime_type: str) -> ContentPart:
    source = DataSource(value=data, mime_type=mime_type)
    return MEDIA.get(mime_type.partition("/")[0], DocumentPart)(source=source)


logger = logging.getLogger(__name__)

Request = Callable[[Client], Awaitable[CallToolResult]]

MAX_TOOLS = 512
"""Largest number of tools of one server. Further tools are left out with a warning in the log."""

MAX_PAGES = 100
"""Largest number of pages of a list of tools. A server may send pages without end, and empty ones among them."""

MAX_AGE = 300.0
"""Seconds after which the tools are listed again, for servers that do not report changes."""

MAX_JUMP = 5.0
"""Seconds that the wall clock may gain on the steady clock. A restored snapshot makes them differ by minutes."""


class Clocks(NamedTuple):
    """The wall clock and the steady clock, both in seconds. Tests replace them."""

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic


class Listing(Struct, frozen=True):
    """A list of tools, and the time of both clocks when it was requested."""

    tools: tuple[Tool, ...]
    wall: float
    steady: float


class McpSource:
    """Tools of one server. Implements ``ports.ToolSource``."""

    def __init__(self, server: Server, clocks: Clocks | None = None) -> None:
        self._server = server
        self._clocks = clocks or Clocks()
        self._connection = McpConnection(server, self.drop_listing, self._clocks.steady)
        self.listing: Listing | None = None
        self._changes = 0
        self._list_lock = asyncio.Lock()

    @property
    def name(self) -> str:
        """The server's name in the configuration."""
        return self._server.name

    async def tools(self, ctx: RunContext) -> Sequence[Tool]:  # noqa: ARG002 - as in the protocol
        """Return the server's tools. Raises ``ToolError`` as ``list_tools``."""
        return await self.list_tools()

    async def list_tools(self) -> Sequence[Tool]:
        """Return the server's tools, with prefixed names.

        Raises:
            ToolError: the server cannot be reached or cannot list its tools.
        """
        self._drop_stale_listing()
        async with self._list_lock:
            return self.listing.tools if self.listing else await self._list()

    async def aclose(self) -> None:
        """Close the session. The process of a ``StdioServer`` ends."""
        self.drop_listing()
        await self._connection.aclose()

    def retire(self) -> None:
        """Close the session once it is unused. Tools that a run still has open a new one for each of their calls."""
        self._connection.retire()

    def drop_listing(self) -> None:
        """Forget the list of tools, because it may have changed. The next run asks for it again."""
        self._changes += 1
        self.listing = None

    def _drop_stale_listing(self) -> None:
        if self.listing is None:
            return
        age, steady_age = self._clocks.wall() - self.listing.wall, self._clocks.steady() - self.listing.steady
        if abs(age - steady_age) > MAX_JUMP:
            self._connection.reset()
            self.drop_listing()
        elif age > MAX_AGE:
            self.drop_listing()

    async def _list(self) -> Sequence[Tool]:
        changes, wall, steady = self._changes, self._clocks.wall(), self._clocks.steady()
        try:
            specs = await self._connection.request(self._list_in_time, repeatable=True)
        except TimeoutError as error:
            self._connection.back_off()
            raise ToolError(f"The MCP server '{self.name}' did not answer in time.") from error
        except (MCPError, ValidationError) as error:
            logger.warning("MCP tools could not be listed %s", format_fields({"server": self.name}), exc_info=error)
            self._connection.reset()
            raise ToolError(f"The MCP server '{self.name}' could not list its tools.") from error
        tools = tuple(McpTool(self._spec(tool), tool.name, self._server, self._connection) for tool in specs)
        if changes == self._changes:
            self.listing = Listing(tools, wall, steady)
        return tools

    async def _list_in_time(self, client: Client) -> list[McpToolSpec]:
        """Return the tools of all pages, or of those that came in time."""
        tools: list[McpToolSpec] = []
        is_complete = False
        try:
            async with asyncio.timeout(self._server.connect_timeout):
                is_complete = await self._read_pages(client, tools)
        except TimeoutError:
            if not tools:
                raise
        if not is_complete or len(tools) > MAX_TOOLS:
            fields = {"server": self.name, "tools": min(len(tools), MAX_TOOLS)}
            logger.warning("MCP tool list truncated %s", format_fields(fields))
        return tools[:MAX_TOOLS]

    async def _read_pages(self, client: Client, tools: list[McpToolSpec]) -> bool:
        """Add the tools of all pages to ``tools``. Return true if the list ended within the limits.

        A cursor that is empty or repeats ends the list. A page without tools does not.
        """
        cursors: list[str | None] = [None]
        while len(cursors) <= MAX_PAGES and len(tools) <= MAX_TOOLS:
            page = await client.list_tools(cursor=cursors[-1])
            tools += page.tools
            if not page.next_cursor or page.next_cursor in cursors:
                return True
            cursors.append(page.next_cursor)
        return False

    def _spec(self, tool: McpToolSpec) -> ToolSpec:
        return ToolSpec(
            name=f"{self._server.prefix}{tool.name}",
            description=tool.description or tool.title or tool.name,
            parameters=tool.input_schema,
        )


class McpTool(Struct, frozen=True):
    """One tool of a server. Implements ``ports.Tool``. ``remote_name`` is its name at the server."""

    spec: ToolSpec
    remote_name: str
    server: Server
    connection: McpConnection

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> ToolContent:  # noqa: ARG002 - as in McpSource.tools
        """Call the tool at the server. If the task is cancelled, the server is asked to cancel the call.

        Raises:
            ToolError: the tool failed, sent no message within ``server.timeout``, or the connection was lost.
        """
        limit = asyncio.timeout(self.server.timeout)
        try:
            async with limit:
                result = await self.connection.request(self._request(arguments, limit), repeatable=False)
        except TimeoutError as error:
            if not limit.expired():
                raise
            text = f"{self.spec.name} did not respond for {self.server.timeout:g} seconds."
            raise ToolError(text) from error
        except MCPError as error:
            raise ToolError(self._error_text(error)) from error
        except ValidationError as error:  # a kind of result that the package does not know
            raise ToolError(self._fault_text(McpFault.UNREADABLE)) from error
        return content_of(result)

    def _request(self, arguments: Mapping[str, object], limit: asyncio.Timeout) -> Request:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
            with contextlib.suppress(RuntimeError):  # the call has already ended
                limit.reschedule(asyncio.get_running_loop().time() + self.server.timeout)

        return lambda client: client.call_tool(self.remote_name, dict(arguments), progress_callback=on_progress)

    def _error_text(self, error: MCPError) -> str:
        fault = fault_of(error)
        return error.message.strip() or NO_REASON if fault is None else self._fault_text(fault)

    def _fault_text(self, fault: McpFault) -> str:
        match fault:
            case McpFault.CONNECTION_LOST:
                return f"The MCP server '{self.server.name}' went away; the call may or may not have been carried out."
            case McpFault.SESSION_REFUSED:
                return f"The MCP server '{self.server.name}' refused the session; the call was not carried out."
            case McpFault.TOO_LARGE:
                limit = f"{MAX_MESSAGE_BYTES:,} bytes"
                return f"{self.spec.name} was carried out, but its result is too large: it has more than {limit}."
            case McpFault.UNREADABLE:
                return f"{self.spec.name} was carried out, but its result cannot be read."
