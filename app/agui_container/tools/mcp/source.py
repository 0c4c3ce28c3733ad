"""What an MCP tool gives, as the content of a tool message.

Rule: text stays text and media become parts. Links are described, never fetched: that would be the server's choice of
what we connect to.

The tools of one MCP server.

Rule: the list is kept until the server says that it changed, until it is old, or until the clocks say that this process
was asleep: nothing that was learnt before a snapshot is believed after it.
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
from pydantic_core import to_json

from agui_container.ports import RunContext, Tool, ToolContent, ToolError
from agui_container.tools.mcp.servers import Server
from agui_container.tools.mcp.session import McpConnection, is_cut_off

MEDIA: dict[str, type[ImagePart] | type[AudioPart] | type[VideoPart]] = {
    "image": ImagePart,
    "audio": AudioPart,
    "video": VideoPart,
}
UNKNOWN = "application/octet-stream"


def content_of(result: CallToolResult) -> ToolContent:
    """The content of a result; the structured form only where the server gives no other.

    Raises:
        ToolError: with the server's words, if the tool says that it failed.
    """
    parts = [_part(block) for block in result.content]
    if result.is_error:
        raise ToolError(_text(parts) or "the tool gave no reason.")
    if not parts and result.structured_content is not None:
        return to_json(result.structured_content).decode()
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
            about = f": {block.description}" if block.description else ""
            return TextPart(text=f"[{block.title or block.name}]({block.uri}){about}")


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
        self._connection = McpConnection(server, self._changed)
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
        self._invalidate()
        async with self._one_at_a_time:
            return self._listing.tools if self._listing else await self._list()

    async def aclose(self) -> None:
        """Close the session; a process that we started is ended."""
        self._changed()
        await self._connection.aclose()

    def _changed(self) -> None:
        self._changes += 1
        self._listing = None

    def _invalidate(self) -> None:
        if self._listing is None:
            return
        age, steady_age = self._clocks.wall() - self._listing.wall, self._clocks.steady() - self._listing.steady
        if abs(age - steady_age) > MAX_JUMP:
            self._connection.reset()
            self._changed()
        elif age > MAX_AGE:
            self._changed()

    async def _list(self) -> Sequence[Tool]:
        changes, wall, steady = self._changes, self._clocks.wall(), self._clocks.steady()
        try:
            found = await self._connection.request(self._pages, repeatable=True)
        except TimeoutError as error:
            self._connection.back_off()
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
    connection: McpConnection

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
            raise ToolError(self._error_text(error)) from error
        return content_of(result)

    def _request(self, arguments: Mapping[str, object], limit: asyncio.Timeout) -> Request:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
            with contextlib.suppress(RuntimeError):  # the call has just ended
                limit.reschedule(asyncio.get_running_loop().time() + self.server.timeout)

        return lambda client: client.call_tool(self.remote_name, dict(arguments), progress_callback=on_progress)

    def _error_text(self, error: MCPError) -> str:
        if is_cut_off(error):
            return f"The MCP server '{self.server.name}' went away; the call may or may not have been carried out."
        return error.message
