"""One session with an MCP server, shared by all runs with equal headers.

Rule: the package's ``Client`` is entered and exited in one task, because its task groups require that.

Source: "Lifecycle" in the Model Context Protocol specification.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import Context
from typing import Any, Final, Literal, TypeVar

from anyio.streams.memory import MemoryObjectReceiveStream
from mcp import Client, MCPError
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agui_container.log_values import format_fields
from agui_container.ports import ToolError
from agui_container.tools.mcp.apps import UI
from agui_container.tools.mcp.open_call import OpenCall
from agui_container.tools.mcp.servers import Server, StdioServer
from agui_container.tools.mcp.transport import REQUEST, McpRequest, open_transport

logger = logging.getLogger(__name__)

T = TypeVar("T")

Send = Callable[[Client], Awaitable[T]]

CLOSE_SECONDS = 5.0
"""Seconds that ``ended`` waits for the end of a session. The package gives a process 4.5 seconds."""

ENDED, NO_BODY = "Connection closed", "Server returned an error response"
"""The package's errors for a session that has ended, and for a status without an error of JSON-RPC."""

UNREADABLE: Final = ("SSE stream ended", "SSE stream failed", "Failed to parse")
"""Begins of the package's errors for an answer that was cut off, is too large, or is no message."""

UNCERTAIN = "The MCP server '{}' gave no answer that can be read; a call may or may not have been carried out."


class SessionLost(ToolError):
    """The session has ended, or the server does not know it. ``is_processed`` is false if it said the latter."""

    def __init__(self, text: str, *, is_processed: bool) -> None:
        super().__init__(text)
        self.is_processed = is_processed


class McpConnection:
    """A session, opened at once and kept until it fails or is closed.

    Attributes:
        calls: calls that are open.
        reports_changes: True while the server reports changes of its tools.
        is_stale: True if the tools have changed, or may have changed.
    """

    def __init__(self, server: Server) -> None:
        loop = asyncio.get_running_loop()
        self.calls: list[OpenCall] = []
        self.reports_changes = False
        self.is_stale = True
        self._server = server
        self._reader: Any = None
        self._client: asyncio.Future[Client] = loop.create_future()
        self._client.add_done_callback(
            lambda it: it.cancelled() or it.exception()
        )  # retrieved: asyncio must not log it
        # With an empty context, because the session outlives the run that opens it and must not log its ids.
        self._task = loop.create_task(self._run(), name=f"mcp {server.name}", context=Context())

    @property
    def has_ended(self) -> bool:
        reader = self._reader  # a process that has ended has closed it
        is_closed = isinstance(reader, MemoryObjectReceiveStream) and not reader.statistics().open_send_streams
        return self._client.done() and (is_closed or self._task.done() or self._task.cancelling() > 0)

    async def request(self, send: Send[T], call: OpenCall | None = None) -> T:
        """Send a request, of a call if it is one.

        Raises:
            MCPError: an error of the server about the request.
            ToolError: the server cannot be reached, has refused the credential, or has lost the session.
        """
        request = McpRequest(call)
        REQUEST.set(request)
        # Shielded, because several runs may wait for the future and a cancelled run must not cancel it.
        client = await asyncio.shield(self._client)
        if call and isinstance(self._server, StdioServer) and client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            await self._wait_for_turn(call)
        self.calls += [call] if call else []
        try:
            return await send(client)
        except MCPError as error:
            raise self._failure(error, request) from error
        finally:
            if call:
                self.calls.remove(call)
                self.is_stale |= not self.reports_changes  # the call may have added a tool

    async def _wait_for_turn(self, call: OpenCall) -> None:
        """Wait until each other call of the run has ended or asks, because a process does not say which call asks."""
        while others := [it for it in self.calls if it.run == call.run and not it.question.done()]:
            waits = [wait for other in others for wait in (other.task, other.question)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            call.restart_limit()

    def close(self) -> None:
        self._task.cancel()

    async def ended(self) -> None:
        await asyncio.wait((self._task,), timeout=CLOSE_SECONDS)

    # --- the task ---

    async def _run(self) -> None:
        request = McpRequest()
        REQUEST.set(request)
        unreachable = ToolError(f"The MCP server '{self._server.name}' cannot be reached.")
        try:
            async with AsyncExitStack() as stack:
                client = await self._connect(stack)
                self._client.set_result(client)
                await self._follow_changes(client)
                await asyncio.get_running_loop().create_future()
        except Exception as error:
            words = "MCP session failed" if self._client.done() else "MCP session could not be opened"
            logger.warning("%s %s", words, format_fields({"server": self._server.name}), exc_info=True)
            unreachable.__cause__ = error
        finally:
            if not self._client.done():
                self._client.set_exception(self._refusal(request) if request.is_refused else unreachable)

    async def _connect(self, stack: AsyncExitStack) -> Client:
        """Open the session.

        A process that ends at the newest handshake is started again with the older one: servers built on Rust's SDK
        exit when the first message is no ``initialize``.
        """
        if self._server.handshake == "initialize":
            return await self._enter(stack, "legacy")
        try:
            return await self._enter(stack, "auto")
        except (MCPError, ExceptionGroup):  # not for a command that does not exist, or that is silent
            if not isinstance(self._server, StdioServer):
                raise
        fields = {"handshake": "initialize", "server": self._server.name}
        logger.info("MCP server started again %s", format_fields(fields))
        return await self._enter(stack, "legacy")

    async def _enter(self, stack: AsyncExitStack, mode: Literal["auto", "legacy"]) -> Client:
        client = Client(
            self._streams(),
            mode=mode,
            message_handler=self._on_message,
            elicitation_callback=self._on_question,
            extensions=[UI],
            cache=None,
        )
        async with asyncio.timeout(self._server.connect_timeout):
            return await stack.enter_async_context(client)

    @asynccontextmanager
    async def _streams(self) -> AsyncGenerator[tuple[Any, Any]]:
        async with open_transport(self._server) as streams:
            self._reader = streams[0]
            yield streams

    # --- failures ---

    def _failure(self, error: MCPError, request: McpRequest) -> Exception:
        """Return the server's own error, or a text where the package has none.

        A server that does not know the session answers with 404. The examples of the TypeScript SDK, after which many
        servers are written, answer 400. An error about the request itself is no such answer.
        """
        name = self._server.name
        if request.is_refused:
            return self._refusal(request)
        if request.status in (400, 404) and error.code not in (INVALID_PARAMS, METHOD_NOT_FOUND):
            self.close()
            return SessionLost(error.message, is_processed=False)
        if error.message == ENDED:
            self.close()
            return SessionLost(UNCERTAIN.format(name), is_processed=True)
        if error.message.startswith(UNREADABLE):
            return ToolError(UNCERTAIN.format(name))
        if error.message.startswith(NO_BODY):
            return ToolError(f"The MCP server '{name}' answered with status {request.status}.")
        return error

    def _refusal(self, request: McpRequest) -> ToolError:
        fields = {"server": self._server.name, "status": request.status, "www_authenticate": request.challenge}
        logger.warning("MCP server refused the credential %s", format_fields(fields))
        return ToolError(f"Authorisation needed: the MCP server '{self._server.name}' refused the credential.")

    # --- messages of the server ---

    async def _on_message(self, message: IncomingMessage) -> None:
        self.is_stale |= isinstance(message, ToolListChangedNotification)

    async def _follow_changes(self, client: Client) -> None:
        """Follow the changes of the tools. Servers from before 2026-07-28 notify unasked."""
        tools = client.server_capabilities.tools
        if not (tools and tools.list_changed):
            return
        with suppress(ListenNotSupportedError, MCPError, SubscriptionLost, TimeoutError):
            async with client.listen(tools_list_changed=True) as changes:
                self.reports_changes = bool(changes.honored.tools_list_changed)
                async for _ in changes:
                    self.is_stale = True
        self.reports_changes = False
        self.is_stale = True

    async def _on_question(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - as in the package's protocol
        params: ElicitRequestParams,
    ) -> ElicitResult | ErrorData:
        request = REQUEST.get()
        call = request.call if request else None
        running = [each for each in self.calls if not each.question.done()]
        if call is None and len({each.run for each in running}) == 1:  # a process does not say which call asks
            call = running[-1]
        if call is None:
            fields = {"server": self._server.name, "calls": len(self.calls)}
            logger.warning("question of an MCP server belongs to no call, cancelled %s", format_fields(fields))
            return ElicitResult(action="cancel")
        return await call.ask(params)
