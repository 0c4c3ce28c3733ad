"""How an MCP server is reached, and how we learn that it hung up.

Rule: the package's own transports, configured. Around them what they do not do: tell that the stream of what the server
says has ended, and leave out what the package would take a server's word for.
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
"""Silence after which an HTTP response counts as dead. A call has its own limit, which may be longer."""

MAX_EVENT_BYTES = 10_000_000
"""The package's own limit of 1 MB is less than one photo; AgentCore Gateway's payloads are up to 6 MB."""

# Strands holds the package below 2.2, which knows no limit yet (docs/decisions/0016).
_LIMITED = "max_sse_event_size" in inspect.signature(streamable_http_client).parameters
_connect = partial(streamable_http_client, max_sse_event_size=MAX_EVENT_BYTES) if _LIMITED else streamable_http_client

Incoming = SessionMessage | Exception


class Messages(Protocol):
    """A server's messages as the package's transports give them. Its own protocol for that is private."""

    async def receive(self) -> Incoming:
        """The next message."""

    async def aclose(self) -> None:
        """Stop listening."""

    async def __anext__(self) -> Incoming: ...


class Requests(Protocol):
    """Takes what is sent to a server."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send one message."""

    async def aclose(self) -> None:
        """Stop sending."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None: ...


class ObservedStream:
    """A server's messages. ``on_end`` is called once they are over, before anybody waits for another."""

    def __init__(self, messages: Messages, on_end: Callable[[], None]) -> None:
        self._messages = messages
        self._on_end = on_end

    @property
    def last_context(self) -> object:
        """The context variables of whoever sent what a message answers; the package looks for it."""
        return getattr(self._messages, "last_context", None)

    async def receive(self) -> Incoming:
        """The next message."""
        return without_output_schemas(await self._messages.receive())

    async def aclose(self) -> None:
        """Stop listening."""
        self._on_end()
        await self._messages.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        return without_output_schemas(await anext(self._messages))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def without_output_schemas(incoming: Incoming) -> Incoming:
    """A list of tools without what their results look like.

    The package checks results against it on the event loop, and one pattern of a server can take for ever there.
    """
    answer = incoming.message if isinstance(incoming, SessionMessage) else None
    tools = answer.result.get("tools") if isinstance(answer, JSONRPCResponse) else None
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            tool.pop("outputSchema", None)
    return incoming


@asynccontextmanager
async def transport(
    server: Server, *, on_end: Callable[[], None], on_forgotten: Callable[[], None]
) -> AsyncGenerator[tuple[ObservedStream, Requests]]:
    """Streams from and to a server.

    ``on_end`` is called when it hangs up, ``on_forgotten`` when it refuses a request because it does not know our
    session (404 to a session id).
    """
    streams = _http(server, on_forgotten) if isinstance(server, HttpServer) else _stdio(server)
    async with streams as (messages, out):
        yield ObservedStream(messages, on_end), out


@asynccontextmanager
async def _http(server: HttpServer, on_forgotten: Callable[[], None]) -> AsyncGenerator[tuple[Messages, Requests]]:
    async def look(response: httpx2.Response) -> None:
        refused = response.status_code == httpx2.codes.NOT_FOUND and response.request.method == "POST"
        if refused and MCP_SESSION_ID in response.request.headers:
            on_forgotten()

    timeout = httpx2.Timeout(server.connect_timeout, read=max(READ_SECONDS, server.timeout))
    hooks = {"response": [look]}
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout, event_hooks=hooks) as client,
        _connect(str(server.url), http_client=client) as streams,
    ):
        yield streams


def _stdio(server: StdioServer) -> AbstractAsyncContextManager[tuple[Messages, Requests]]:
    parameters = StdioServerParameters(command=server.command, args=list(server.args), env=dict(server.env))
    # Named here, because the package's default is whatever standard error was when it was imported.
    return stdio_client(parameters, errlog=sys.stderr)
