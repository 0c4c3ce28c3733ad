"""The open connections of a process: their limit, and the end of connections whose clients do not read.

Rule: if there are too many connections, the one that has waited longest for the head of a request is closed. If none
waits, a new connection can only ask for ``/ping``. So neither half-sent requests nor idle clients can make the process
silent. Connections of one address are the concern of a proxy (docs/limits.md).
"""

import asyncio
import logging
import resource
from collections.abc import Mapping

from starlette.types import Receive, Scope, Send

from agui_container.telemetry import RefusalLog
from agui_container.transports.event_stream import STALLED_SECONDS

MAX_DESCRIPTORS = 65_536
"""Open files that the process asks for, if its hard limit allows as many."""

RESERVED_SHARE = 8
"""Divisor of the limit of open files: an eighth of it, up to ``MAX_RESERVED``, is kept for files, stores and pings."""

MIN_RESERVED, MAX_RESERVED = 48, 256

MIN_DESCRIPTORS = MIN_RESERVED + 16
"""Open files without which the process does not start: the reserved ones, and a few connections."""

MAX_SURPLUS = 16
"""Connections beyond the limit, which can only ask for ``/ping``."""

LIMIT_NAME = "connections"
"""Name of this limit in metrics and in the log."""

CLOSING_SECONDS = 10.0
"""The same as ``STALLED_SECONDS`` for a connection that is being closed."""

OVERLOADED_HEADERS = ((b"retry-after", b"1"), (b"content-length", b"0"), (b"connection", b"close"))
OVERLOADED_HANDSHAKE = b"\r\n".join(
    [b"HTTP/1.1 503 Service Unavailable", *(b"%b: %b" % header for header in OVERLOADED_HEADERS), b"", b""]
)

CONNECTION_LIMIT = "agui.connection_limit"
"""Key in the application's lifespan state. The value is the ``ConnectionLimit`` of the process."""

logger = logging.getLogger(__name__)


def raise_descriptor_limit() -> int:
    """Raise the limit of open files as far as the system allows, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        soft = limit
    return limit if soft == resource.RLIM_INFINITY else soft


class ConnectionLimit:
    """The limit of open connections, below the limit of open files. The name of a connection is its transport.

    Args:
        descriptors: files that the process may have open.

    Attributes:
        limit: connections that may be open. ``MAX_SURPLUS`` more can ask for ``/ping``.
    """

    def __init__(self, descriptors: int) -> None:
        self.limit = max(1, descriptors - min(MAX_RESERVED, max(MIN_RESERVED, descriptors // RESERVED_SHARE)))
        # Dictionaries, because they keep the order: the oldest is the first.
        self._open: dict[asyncio.Transport, None] = {}
        self._surplus: dict[asyncio.Transport, None] = {}
        self._waiting: dict[asyncio.Transport, None] = {}
        self._unsent: dict[asyncio.Transport, tuple[int, float]] = {}
        self._refusal_log = RefusalLog()

    # --- the beginning and the end of a connection ---

    def admit(self, transport: asyncio.Transport) -> bool:
        """Admit a new connection, which waits for a head. Return False if it can only ask for ``/ping``."""
        if self._has_room():
            self._open[transport] = None
            self.begin_waiting(transport)
            return True
        self._surplus[transport] = None
        if len(self._surplus) > MAX_SURPLUS:
            self._abort(next(iter(self._surplus)))
        return False

    def readmit(self, transport: asyncio.Transport) -> bool:
        """Admit a connection that could only ask for ``/ping`` and asks for something else.

        Return False if the request must be refused.
        """
        if transport not in self._surplus:
            return False
        if not self._has_room():
            self._refusal_log.report(LIMIT_NAME)
            return False
        del self._surplus[transport]
        self._open[transport] = None
        self.begin_waiting(transport)
        return True

    def remove(self, transport: asyncio.Transport) -> None:
        """Forget a connection that has ended."""
        self._unsent.pop(transport, None)
        self.end_waiting(transport)
        for connections in (self._open, self._surplus):
            connections.pop(transport, None)

    def begin_waiting(self, transport: asyncio.Transport) -> None:
        """Note that a connection waits for the head of a request."""
        if transport in self._open:
            self._waiting.pop(transport, None)
            self._waiting[transport] = None

    def end_waiting(self, transport: asyncio.Transport) -> None:
        """Note that the head is complete."""
        self._waiting.pop(transport, None)

    def _has_room(self) -> bool:
        """Return True if another connection fits, perhaps because one that waits is closed for it."""
        if len(self._open) >= self.limit and self._waiting:
            self._abort(next(iter(self._waiting)))
        return len(self._open) < self.limit

    def _abort(self, transport: asyncio.Transport) -> None:
        self._refusal_log.report(LIMIT_NAME)
        self.remove(transport)
        transport.abort()

    # --- clients that do not read ---

    def check_progress(self, now: float) -> None:
        """Cut off connections whose clients do not read. ``now`` is the event loop's time, in seconds."""
        for transport in (*self._open, *self._surplus):
            unsent = transport.get_write_buffer_size()
            if unsent:
                self._check_unsent(transport, unsent, now)
            elif transport.is_closing():
                self.remove(transport)  # the protocol has ended and does not call ``remove`` itself
            else:
                self._unsent.pop(transport, None)

    def _check_unsent(self, transport: asyncio.Transport, unsent: int, now: float) -> None:
        before, since = self._unsent.get(transport, (unsent, now))
        seconds = CLOSING_SECONDS if transport.is_closing() else STALLED_SECONDS
        has_progress = unsent < before
        self._unsent[transport] = unsent, now if has_progress else since
        if not has_progress and now - since >= seconds:
            logger.info("slow reader disconnected unsent_bytes=%d idle_seconds=%d", unsent, seconds)
            transport.abort()


def connection_limit(state: Mapping[str, object]) -> ConnectionLimit:
    """Return the limit in the application's lifespan state, or a new one if the server has put none there."""
    limit = state.get(CONNECTION_LIMIT)
    return limit if isinstance(limit, ConnectionLimit) else ConnectionLimit(MAX_DESCRIPTORS)


async def answer_overloaded(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer a request on a connection beyond the limit with 503."""
    await send({"type": "http.response.start", "status": 503, "headers": OVERLOADED_HEADERS})
    await send({"type": "http.response.body"})
