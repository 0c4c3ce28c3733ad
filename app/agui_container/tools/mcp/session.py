"""The session with one MCP server.

The first request opens the session. All runs share it, and it is reopened after a failure.

Rules: the package's ``Client`` is entered and exited in one task, because its task groups require that. The task
belongs to the connection and not to a run, so the session survives the end of a run. A request is repeated once, and
only if the server cannot have processed it or if repeating it changes nothing. A session that is given up ends when its
requests are answered. After a failed attempt to connect, requests fail at once until a growing pause has passed.

A process that does not answer the handshake of 2026-07-28 is started again with the older one, and again from then on,
because servers from before exit at a method that they do not know, or wait for the one that they do.

Source: "Lifecycle" in the Model Context Protocol specification.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from contextvars import Context
from typing import Literal, TypeVar

from mcp import Client, MCPError
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp_types import METHOD_NOT_FOUND, ToolListChangedNotification
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from msgspec import Struct, field

from agui_container.ports import ToolError
from agui_container.runtime.futures import mark_retrieved
from agui_container.runtime.log_values import format_fields
from agui_container.tools.mcp.faults import McpFault, fault_of
from agui_container.tools.mcp.servers import Server, StdioServer
from agui_container.tools.mcp.transport import HttpRecord, transport

logger = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE, MAX_PAUSE = 1.0, 60.0
"""Seconds before the next attempt. The pause doubles after each failure."""

CLOSE_SECONDS = 3.0
"""Seconds that ``aclose`` waits for sessions to end. A process takes up to 2.5 seconds."""

PROBE_SHARE = 0.5
"""Share of ``connect_timeout`` in which a process must answer the handshake of 2026-07-28."""


class OpenSession(Struct, eq=False):
    """One session and its state.

    Attributes:
        client: resolves when the session is open, or fails with a ``ToolError``.
        ended: set when the server has closed the connection.
        record: observations of the transport.
        requests: number of requests that wait for the session or its answer.
    """

    client: asyncio.Future[Client]
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    record: HttpRecord = field(default_factory=HttpRecord)
    requests: int = 0


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
        self._is_retired = False
        self._is_legacy = False
        """True if the process is known to need the handshake from before 2026-07-28."""

    async def request(self, send: Callable[[Client], Awaitable[T]], *, repeatable: bool) -> T:
        """Send a request in the current session, or in a new one.

        Args:
            send: sends the request with a client.
            repeatable: true if the request may be sent again although the server may have processed it.

        Raises:
            ToolError: no session can be opened.
            MCPError: the server's error, or one with a fault.
        """
        session = self._get_session()
        try:
            answer = await self._send(session, send)
        except MCPError as error:
            if not _may_repeat(error, session, repeatable=repeatable):
                self._on_change()  # the list is the next request that may be repeated, and finds a lost session
                raise
            self._give_up(session)
            answer = await self._send(self._get_session(), send)
        self._pause = FIRST_PAUSE
        return answer

    async def _send(self, session: OpenSession, send: Callable[[Client], Awaitable[T]]) -> T:
        session.requests += 1
        try:
            # Shielded, because several runs may wait for the future and a cancelled run must not cancel it.
            return await send(await asyncio.shield(session.client))
        finally:
            session.requests -= 1
            if self._is_retired and not session.requests:
                self.reset()
            if session is not self._session:
                self._close_if_unused(session)

    def reset(self) -> None:
        """Give up the current session, if there is one. The next request opens another."""
        if self._session is not None:
            self._give_up(self._session)

    def retire(self) -> None:
        """Close every session from now on as soon as it has no request."""
        self._is_retired = True
        self.reset()

    def back_off(self) -> None:
        """Give up the current session and let requests fail until a pause has passed."""
        self.reset()
        self._retry_at = self._steady() + self._pause
        self._pause = min(MAX_PAUSE, 2 * self._pause)

    async def aclose(self) -> None:
        """Close all sessions and wait up to ``CLOSE_SECONDS`` for their end."""
        self._session = None
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            _, pending = await asyncio.wait(self._tasks.values(), timeout=CLOSE_SECONDS)
            for task in pending:
                task.cancel()  # a second time, which a process answers by killing its group at once

    # --- opening and closing ---

    def _get_session(self) -> OpenSession:
        if self._session is None:
            if self._steady() < self._retry_at:
                raise self._unreachable()
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

    def _give_up(self, session: OpenSession) -> None:
        if self._session is session:
            self._session = None
        self._close_if_unused(session)

    def _close_if_unused(self, session: OpenSession) -> None:
        if not session.requests and session in self._tasks:
            self._tasks[session].cancel()

    async def _run_session(self, session: OpenSession) -> None:
        """Open a session and run it until the server closes the connection or the task is cancelled."""

        def on_end() -> None:
            session.ended.set()
            if self._session is session and session.client.done():
                self._session = None
                self._on_change()  # a restarted server may have other tools

        try:
            async with AsyncExitStack() as stack:
                client = await self._connect(stack, session, on_end)
                session.client.set_result(client)
                await self._subscribe_until(session.ended, client)
        except Exception as error:
            opened = session.client.done()
            words = "MCP session failed %s" if opened else "MCP session could not be opened %s"
            level = logging.INFO if opened else logging.WARNING
            logger.log(level, words, format_fields({"server": self._server.name}), exc_info=True)
            if not opened:
                self.back_off()
                session.client.set_exception(self._unreachable(error))
        finally:
            if not session.client.done():
                session.client.set_exception(self._unreachable())
            on_end()

    async def _connect(self, stack: AsyncExitStack, session: OpenSession, on_end: Callable[[], None]) -> Client:
        """Open the connection. A process that does not take the newest handshake is started again."""
        limit = self._server.connect_timeout

        async def enter(mode: Literal["auto", "legacy"], seconds: float) -> Client:
            streams = transport(self._server, session.record, on_end)
            client = Client(streams, mode=mode, message_handler=self._on_message, cache=None)
            async with asyncio.timeout(seconds):
                return await stack.enter_async_context(client)

        if not isinstance(self._server, StdioServer):
            return await enter("auto", limit)
        if not self._is_legacy:
            try:
                client = await enter("auto", limit * PROBE_SHARE)
            except Exception as error:  # noqa: BLE001 - an exit has many forms; the second attempt reports its own
                fields = {"server": self._server.name, "error": type(error).__name__}
                logger.info("MCP server is started again with the older handshake %s", format_fields(fields))
                session.ended.clear()
            else:
                self._is_legacy = client.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
                return client
        client = await enter("legacy", limit)
        self._is_legacy = True
        return client

    def _unreachable(self, cause: Exception | None = None) -> ToolError:
        """Return the error for callers. Its cause is for operators."""
        error = ToolError(f"The MCP server '{self._server.name}' cannot be reached.")
        error.__cause__ = cause
        return error

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
        pause, is_first = FIRST_PAUSE, True
        while True:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    if not changes.honored.tools_list_changed:
                        return
                    if not is_first:
                        self._on_change()  # changes without a subscription were not reported
                    async for _ in changes:
                        self._on_change()
                        pause = FIRST_PAUSE
            except ListenNotSupportedError:
                return
            except (MCPError, SubscriptionLost, TimeoutError) as error:
                if isinstance(error, MCPError) and error.code == METHOD_NOT_FOUND:
                    return
            is_first = False
            await asyncio.sleep(pause)
            pause = min(MAX_PAUSE, 2 * pause)


def _may_repeat(error: MCPError, session: OpenSession, *, repeatable: bool) -> bool:
    """Return true if a request may be sent again, in a new session.

    A server that lost its sessions refuses all requests, with errors of all kinds. A request that changes nothing is
    repeated after any of them. Another one is repeated only if the server says that it does not know the session.
    """
    fault = fault_of(error)
    if fault is McpFault.SESSION_REFUSED:
        return True
    if fault is McpFault.CONNECTION_LOST:
        return repeatable
    return repeatable and fault is None and session.record.has_session
