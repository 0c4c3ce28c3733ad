"""Transports to MCP servers: those of the ``mcp`` package, with two additions.

The additions are callbacks for a closed connection and an expired session, and the removal of output schemas. Rule: the
package sends and parses all messages; this module only configures and observes it.

Source: "Transports" in the Model Context Protocol specification.
"""

import inspect
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Protocol, Self

import httpx2
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from agui_container.tools.mcp.servers import HttpServer, Server, StdioServer

READ_SECONDS = 300.0
"""Seconds without data after which an HTTP response fails. The timeout of a call applies instead if it is longer."""

MAX_EVENT_BYTES = 10_000_000
"""Bytes of one event. The package's default of 1 MB is too small for a photo; AgentCore Gateway allows 6 MB."""

# Strands requires a version below 2.2, which has no such parameter (docs/decisions/0016).
_HAS_LIMIT = "max_sse_event_size" in inspect.signature(streamable_http_client).parameters
_connect = partial(streamable_http_client, max_sse_event_size=MAX_EVENT_BYTES) if _HAS_LIMIT else streamable_http_client

Incoming = SessionMessage | Exception


class MessageReader(Protocol):
    """Stream of messages from a server. The package's own protocol for it is private."""

    async def receive(self) -> Incoming:
        """Wait for the next message."""

    async def aclose(self) -> None:
        """Close the stream."""

    async def __anext__(self) -> Incoming: ...


class MessageWriter(Protocol):
    """Stream of messages to a server. The package's own protocol for it is private."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send one message."""

    async def aclose(self) -> None:
        """Close the stream."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None: ...


class ObservedStream:
    """Stream of messages from a server that calls ``on_end`` before it is closed."""

    def __init__(self, reader: MessageReader, on_end: Callable[[], None]) -> None:
        self._reader = reader
        self._on_end = on_end

    @property
    def last_context(self) -> object:
        """Context variables of the sender of the answered request. The package reads this attribute."""
        return getattr(self._reader, "last_context", None)

    async def receive(self) -> Incoming:
        """Wait for the next message."""
        return without_output_schemas(await self._reader.receive())

    async def aclose(self) -> None:
        """Call ``on_end`` and close the stream."""
        self._on_end()
        await self._reader.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        return without_output_schemas(await anext(self._reader))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def without_output_schemas(incoming: Incoming) -> Incoming:
    """Remove the output schemas from a list of tools, and return the message.

    The package would validate results with them on the event loop, and a regular expression from a server could block
    it forever.
    """
    answer = incoming.message if isinstance(incoming, SessionMessage) else None
    tools = answer.result.get("tools") if isinstance(answer, JSONRPCResponse) else None
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            tool.pop("outputSchema", None)
    return incoming


@asynccontextmanager
async def transport(
    server: Server, *, on_end: Callable[[], None], on_expired: Callable[[], None]
) -> AsyncGenerator[tuple[ObservedStream, MessageWriter]]:
    """Open the streams from and to a server.

    ``on_end`` is called when the connection is closed. ``on_expired`` is called when the server no longer knows the
    session, so that it answers a request with status 404.
    """
    streams = _http(server, on_expired) if isinstance(server, HttpServer) else _stdio(server)
    async with streams as (reader, writer):
        yield ObservedStream(reader, on_end), writer


@asynccontextmanager
async def _http(
    server: HttpServer, on_expired: Callable[[], None]
) -> AsyncGenerator[tuple[MessageReader, MessageWriter]]:
    async def check_session(response: httpx2.Response) -> None:
        not_found = response.status_code == httpx2.codes.NOT_FOUND and response.request.method == "POST"
        if not_found and MCP_SESSION_ID in response.request.headers:
            on_expired()

    timeout = httpx2.Timeout(server.connect_timeout, read=max(READ_SECONDS, server.timeout))
    hooks = {"response": [check_session]}
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout, event_hooks=hooks) as client,
        _connect(str(server.url), http_client=client) as streams,
    ):
        yield streams


def _stdio(server: StdioServer) -> AbstractAsyncContextManager[tuple[MessageReader, MessageWriter]]:
    parameters = StdioServerParameters(command=server.command, args=list(server.args), env=dict(server.env))
    # Explicit, because the package's default is the standard error of the time of its import.
    return stdio_client(parameters, errlog=sys.stderr)
