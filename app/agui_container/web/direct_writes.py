"""Writes that reach the connection without ASGI's ``send``, so that the flusher can push events.

Rule: ``CallerMiddleware`` keeps the ``send`` that it received. A connection writes only if that is its own, so that no
middleware is passed over. Behind ``CallerMiddleware`` there is only Starlette's exception handling, which changes
neither chunks nor frames.
"""

from collections.abc import Callable
from typing import Protocol

from starlette.types import Scope, Send

CONNECTION_EXTENSION = "agui.connection"
"""Key in the extensions of a scope, under this project's server. The value is its ``DirectConnection``."""

OUTER_SEND = "agui.outer_send"
"""Key in the scope's state for the ``send`` that ``CallerMiddleware`` received."""

DirectWrite = Callable[[bytes], bool]
"""Writes a chunk or a text frame at once, or returns False if that is impossible now. Raises nothing."""


class DirectConnection(Protocol):
    """Connection of this project's server."""

    def write_directly(self, send: Send, data: bytes) -> bool:
        """Return False if ``send`` is not the connection's own, or if the connection would have to wait."""


def direct_writer(scope: Scope) -> DirectWrite | None:
    """Return None under another server."""
    connection: DirectConnection | None = scope.get("extensions", {}).get(CONNECTION_EXTENSION)
    send: Send | None = scope.get("state", {}).get(OUTER_SEND)
    if connection is None or send is None:
        return None

    def write(data: bytes) -> bool:
        try:
            return connection.write_directly(send, data)
        except Exception:  # noqa: BLE001 - the task that sends meets the same failure and raises it
            return False

    return write
