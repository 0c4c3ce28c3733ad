"""The session with one MCP server, and its transport.

The first request opens the session. All runs share it, and it is reopened after a failure. The transport is that of the
``mcp`` package with two additions: callbacks for a closed connection and an expired session, and the removal of output
schemas.

Rules: the package's ``Client`` is entered and exited in one task, because its task groups require that. The task
belongs to the connection and not to a run, so the session survives the end of a run. A request is repeated only if the
server cannot have processed it. After a failed attempt to connect, requests fail at once until a growing pause has
passed. The package sends and parses all messages; this module only configures and observes it.

Source: "Lifecycle" and "Transports" in the Model Context Protocol specification.
"""

import asyncio
import inspect
import logging
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import Context
from functools import partial
from types import TracebackType
from typing import Protocol, Self, TypeVar

import httpx2
from mcp import Client, MCPError
from mcp.client import Transport
from mcp.client.session import IncomingMessage
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, METHOD_NOT_FOUND, JSONRPCResponse, ToolListChangedNotification
from msgspec import Struct, field

from agui_container.ports import ToolError
from agui_container.runtime.futures import mark_retrieved
from agui_container.runtime.log_values import format_fields
from agui_container.tools.mcp.servers import HttpServer, Server, StdioServer

logger = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE, MAX_PAUSE = 1.0, 60.0
"""Seconds before the next attempt. The pause doubles after each failure."""

CLOSE_SECONDS = 2.0
"""Seconds that ``aclose`` waits for sessions to end. The package later kills a process that does not end."""

CONNECTION_LOST = ("Connection closed", "SSE stream ")
"""Prefixes of the package's own errors for a lost connection. The code alone is not enough: servers use it too."""


class OpenSession(Struct, frozen=True, eq=False):
    """One session and its state.

    Attributes:
        client: resolves when the session is open, or fails with a ``ToolError``.
        ended: set when the server has closed the connection.
        expired: set when the server no longer knows the session. It refuses requests of the session unprocessed.
    """

    client: asyncio.Future[Client]
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    expired: asyncio.Event = field(default_factory=asyncio.Event)


class McpConnection:
    """Connection to one server, with at most one current session.

    Args:
        server: configuration of the server.
        on_change: called when the server's tools have changed, or may have changed.
        steady: the steady clock, in seconds.
    """

    def __init__(
        self, server: Server, on_change: Callable[[], None], steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._server = server
        self._on_change = on_change
        self._steady = steady
        self._session: OpenSession | None = None
        self._tasks: dict[OpenSession, asyncio.Task[None]] = {}
        self._pause = FIRST_PAUSE
        self._retry_at = 0.0

    async def request(self, send: Callable[[Client], Awaitable[T]], *, repeatable: bool) -> T:
        """Send a request in the current session, or in a new one.

        Args:
            send: sends the request with a client.
            repeatable: true if the request may be sent again although the server may have processed it.

        Raises:
            ToolError: no session can be opened.
            MCPError: the server's error, or one for which ``is_connection_lost`` is true.
        """
        session = self._get_session()
        try:
            answer = await send(await _client(session))
        except MCPError as error:
            # A call may have been processed before the connection was lost. An expired session processes nothing.
            if not (repeatable if is_connection_lost(error) else session.expired.is_set()):
                raise
            self._close_session(session)
            answer = await send(await _client(self._get_session()))
        self._pause = FIRST_PAUSE
        return answer

    def reset(self) -> None:
        """Close the current session, if there is one. The next request opens another."""
        if self._session is not None:
            self._close_session(self._session)

    def back_off(self) -> None:
        """Close the current session and let requests fail until a pause has passed."""
        self.reset()
        self._retry_at = self._steady() + self._pause
        self._pause = min(MAX_PAUSE, 2 * self._pause)

    async def aclose(self) -> None:
        """Close the session and wait up to ``CLOSE_SECONDS`` for its end."""
        self.reset()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=CLOSE_SECONDS)

    # --- opening and closing ---

    def _get_session(self) -> OpenSession:
        if self._session is None:
            if self._steady() < self._retry_at:
                raise ToolError(self._unreachable())
            self._session = self._open()
        return self._session

    def _open(self) -> OpenSession:
        loop = asyncio.get_running_loop()
        session = OpenSession(loop.create_future())
        session.client.add_done_callback(mark_retrieved)
        # With an empty context, because the session outlives the run that opens it and must not log its ids.
        task = loop.create_task(self._run_session(session), name=f"mcp {self._server.name}", context=Context())
        self._tasks[session] = task
        task.add_done_callback(lambda _: self._tasks.pop(session))
        return session

    def _close_session(self, session: OpenSession) -> None:
        if self._session is session:
            self._session = None
        if session in self._tasks:
            self._tasks[session].cancel()

    async def _run_session(self, session: OpenSession) -> None:
        """Open a session and run it until the server closes the connection or the task is cancelled."""

        def on_end() -> None:
            if self._session is session:
                self._session = None
                self._on_change()  # a restarted server may have other tools
            session.ended.set()

        try:
            async with (
                asyncio.timeout(self._server.connect_timeout) as limit,
                Client(self._transport(session, on_end), message_handler=self._on_message, cache=None) as client,
            ):
                limit.reschedule(None)
                session.client.set_result(client)
                await self._subscribe_until(session.ended, client)
        except Exception:
            on_end()
            if session.client.done():
                logger.info("MCP session failed %s", format_fields({"server": self._server.name}), exc_info=True)
            else:
                logger.warning(
                    "MCP session could not be opened %s", format_fields({"server": self._server.name}), exc_info=True
                )
                self.back_off()
        finally:
            on_end()
            if not session.client.done():
                session.client.set_exception(ToolError(self._unreachable()))

    def _transport(self, session: OpenSession, on_end: Callable[[], None]) -> Transport:
        return transport(self._server, on_end=on_end, on_expired=session.expired.set)

    def _unreachable(self) -> str:
        return f"The MCP server '{self._server.name}' cannot be reached."

    # --- notifications ---

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._on_change()

    async def _subscribe_until(self, ended: asyncio.Event, client: Client) -> None:
        async with asyncio.TaskGroup() as group:
            subscription = group.create_task(self._subscribe(client))
            await ended.wait()
            subscription.cancel()

    async def _subscribe(self, client: Client) -> None:
        """Subscribe to changes of the tools.

        Since protocol version 2026-07-28 a server notifies only subscribers. Before, it notified every client.
        """
        pause = FIRST_PAUSE
        while True:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    if not changes.honored.tools_list_changed:
                        return
                    async for _ in changes:
                        self._on_change()
                        pause = FIRST_PAUSE
            except ListenNotSupportedError:
                return
            except (MCPError, SubscriptionLost, TimeoutError) as error:
                if isinstance(error, MCPError) and error.code == METHOD_NOT_FOUND:
                    return
            await asyncio.sleep(pause)
            pause = min(MAX_PAUSE, 2 * pause)
            self._on_change()  # changes without a subscription were not reported


def is_connection_lost(error: MCPError) -> bool:
    """Return true if the connection was lost before the server answered."""
    return error.code == CONNECTION_CLOSED and error.message.startswith(CONNECTION_LOST)


async def _client(session: OpenSession) -> Client:
    # Shielded, because several runs may wait for the future and a cancelled run must not cancel it.
    return await asyncio.shield(session.client)


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
