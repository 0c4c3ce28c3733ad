"""One server: its transport, its commands, and the capabilities that say which commands it knows.

Rule: AG-UI defines no commands. A command is sent if the capabilities name it in ``custom.commands``, as AGUI Container
does, and the capabilities are asked for when a feature needs them, and not before.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ag_ui.core import AgentCapabilities

from agui_client.backoff import Backoff, Retry
from agui_client.caller import Caller
from agui_client.errors import ConnectionDropped, RunRefusedError, UnsupportedError
from agui_client.http_transport import HttpTransport
from agui_client.transport import Frame, Transport
from agui_client.websocket_transport import WebSocketTransport

T = TypeVar("T")

CALLER_REFUSED = frozenset({"UNAUTHORIZED", "ACCESS_DENIED", "HTTP_401", "HTTP_403"})


class Server:
    """A server as its callers use it."""

    def __init__(self, caller: Caller, retry: Retry) -> None:
        self.transport: Transport = WebSocketTransport(caller) if caller.uses_websocket else HttpTransport(caller)
        self.retry = retry
        self.place = caller.place
        self._capabilities: AgentCapabilities | None = None
        self._commands: frozenset[str] | None = None

    async def capabilities(self) -> AgentCapabilities | None:
        """Return what the server can do. None if it does not answer that question.

        Raises ``ConnectionDropped``, and ``RunRefusedError`` if the server does not accept the caller.
        """
        if self._commands is None:
            try:
                result = await self.transport.command({"type": "capabilities"})
            except RunRefusedError as error:
                if error.retryable or error.code in CALLER_REFUSED:
                    raise
                self._commands = frozenset()
            else:
                self._capabilities = AgentCapabilities.model_validate(result.get("capabilities") or {})
                self._commands = _commands(self._capabilities)
        return self._capabilities

    async def knows(self, command: str) -> bool:
        """Return True if the capabilities name the command. Raises as ``capabilities``."""
        await self.capabilities()
        return command in (self._commands or ())

    async def command(self, command: str, **fields: object) -> Frame:
        """Send a command, as ``retrying`` does, and return its result.

        Raises ``UnsupportedError`` for one that the server does not know, ``RunRefusedError`` and
        ``ConnectionLostError``.
        """

        async def ask() -> Frame:
            if not await self.knows(command):
                raise UnsupportedError(f"The capabilities of this server do not name the command {command}.")
            return await self.transport.command({"type": command, **fields})

        return await self.retrying(ask)

    async def retrying(self, ask: Callable[[], Awaitable[T]], backoff: Backoff | None = None) -> T:
        """Ask, and again after a drop or a refusal that is ``retryable``. Raises ``ConnectionLostError`` at last."""
        backoff = backoff or Backoff(self.retry, self.place)
        while True:
            try:
                return await ask()
            except ConnectionDropped as error:
                await backoff.pause(error)
            except RunRefusedError as error:
                if not (error.retryable and self.retry.give_up_after):
                    raise
                await backoff.pause(error)


def _commands(capabilities: AgentCapabilities) -> frozenset[str]:
    commands = (capabilities.custom or {}).get("commands")
    return frozenset(commands) if isinstance(commands, list) else frozenset()
