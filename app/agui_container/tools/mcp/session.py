"""One session with one MCP server: opened when somebody needs it, shared by all runs, opened again after it broke.

Rules: the package's ``Client`` is entered and left in one task, because its task groups demand it; that task is ours,
not a run's, so no run's end takes the session with it. A request is repeated only where the server cannot have acted on
it. While a server cannot be reached, those who ask are told so at once, and it is tried again after a growing pause.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import TypeVar

from mcp import Client, MCPError
from mcp.client import Transport
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp_types import CONNECTION_CLOSED, METHOD_NOT_FOUND, ToolListChangedNotification
from msgspec import Struct, field

from agui_container.ports import ToolError
from agui_container.tools.mcp.servers import Server
from agui_container.tools.mcp.transport import transport

logger = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before another attempt: doubled after each that failed."""

CLOSE_SECONDS = 2.0
"""How long ``aclose`` waits for servers to say goodbye. A process that will not end is killed by the package later."""

HUNG_UP = ("Connection closed", "SSE stream ")
"""How the package's own errors begin where no answer can come. Servers use the same code for errors of theirs."""


class OpenSession(Struct, frozen=True, eq=False):
    """One session: its client once it is open, and what the server did to it.

    Attributes:
        ended: the server has hung up.
        forgotten: the server does not know the session any more; what is sent in it is refused, not carried out.
    """

    opened: asyncio.Future[Client]
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    forgotten: asyncio.Event = field(default_factory=asyncio.Event)


class McpConnection:
    """Sessions with one server, one after the other.

    Args:
        on_change: called when the server says that its tools have changed, or may have.
    """

    def __init__(self, server: Server, on_change: Callable[[], None]) -> None:
        self._server = server
        self._on_change = on_change
        self._session: OpenSession | None = None
        self._tasks: dict[OpenSession, asyncio.Task[None]] = {}
        self._pause = FIRST_PAUSE
        self._not_before = 0.0

    async def request(self, send: Callable[[Client], Awaitable[T]], *, repeatable: bool) -> T:
        """Send a request in the open session, or in a new one.

        Raises:
            ToolError: there is no session to be had.
            MCPError: the server's own error, or one that ``is_cut_off`` if it went away before it answered.
        """
        session = self._current()
        try:
            answer = await send(await _client(session))
        except MCPError as error:
            # Of a call that was cut off nobody knows whether it was carried out; one that was refused was not.
            if not (repeatable if is_cut_off(error) else session.forgotten.is_set()):
                raise
            self._leave(session)
            answer = await send(await _client(self._current()))
        self._pause = FIRST_PAUSE
        return answer

    def reset(self) -> None:
        """Do without the open session, if there is one: the next request opens another."""
        if self._session is not None:
            self._leave(self._session)

    def back_off(self) -> None:
        """Leave the server alone for a while, because it does not do what it should."""
        self.reset()
        self._not_before = time.monotonic() + self._pause
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)

    async def aclose(self) -> None:
        """Close the session and wait a moment for it."""
        self.reset()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=CLOSE_SECONDS)

    # --- opening and leaving ---

    def _current(self) -> OpenSession:
        if self._session is None:
            if time.monotonic() < self._not_before:
                raise ToolError(self._unreachable())
            self._session = self._open()
        return self._session

    def _open(self) -> OpenSession:
        loop = asyncio.get_running_loop()
        session = OpenSession(loop.create_future())
        session.opened.add_done_callback(_retrieved)
        # A context of its own: the session outlives the run that happened to open it, whose ids must not be logged.
        task = loop.create_task(self._hold(session), name=f"mcp {self._server.name}", context=Context())
        self._tasks[session] = task
        task.add_done_callback(lambda _: self._tasks.pop(session))
        return session

    def _leave(self, session: OpenSession) -> None:
        if self._session is session:
            self._session = None
        if session in self._tasks:
            self._tasks[session].cancel()

    async def _hold(self, session: OpenSession) -> None:
        """Keep a session open until the server hangs up or we leave it."""

        def on_end() -> None:
            if self._session is session:
                self._session = None
                self._on_change()  # who comes back may have other tools
            session.ended.set()

        try:
            async with (
                asyncio.timeout(self._server.connect_timeout) as limit,
                Client(self._transport(session, on_end), message_handler=self._on_message, cache=None) as client,
            ):
                limit.reschedule(None)
                session.opened.set_result(client)
                await self._watch(client, session.ended)
        except Exception:
            on_end()
            if session.opened.done():
                logger.info("server=<%s> | the MCP session broke", self._server.name, exc_info=True)
            else:
                logger.warning("server=<%s> | no MCP session could be opened", self._server.name, exc_info=True)
                self.back_off()
        finally:
            on_end()
            if not session.opened.done():
                session.opened.set_exception(ToolError(self._unreachable()))

    def _transport(self, session: OpenSession, on_end: Callable[[], None]) -> Transport:
        return transport(self._server, on_end=on_end, on_forgotten=session.forgotten.set)

    def _unreachable(self) -> str:
        return f"The MCP server '{self._server.name}' cannot be reached."

    # --- while it is open ---

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._on_change()

    async def _watch(self, client: Client, ended: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            subscription = group.create_task(self._subscribe(client))
            await ended.wait()
            subscription.cancel()

    async def _subscribe(self, client: Client) -> None:
        """Since 2026-07-28 a server tells of changes only to those who listen; before, it tells everybody."""
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
            pause = min(LONGEST_PAUSE, 2 * pause)
            self._on_change()  # whatever changed while nobody listened


def is_cut_off(error: MCPError) -> bool:
    """Whether the server went away before it answered, in place of answering with an error."""
    return error.code == CONNECTION_CLOSED and error.message.startswith(HUNG_UP)


async def _client(session: OpenSession) -> Client:
    # Shielded: several runs may wait for it, and one that is cancelled must not take it from the others.
    return await asyncio.shield(session.opened)


def _retrieved(opened: asyncio.Future[Client]) -> None:
    """Look at the exception, which asyncio complains about otherwise when everybody who waited has left."""
    if not opened.cancelled():
        opened.exception()
