"""The open connections of a process: how many there may be, and the end of those whose clients have gone.

Rule: if there are too many connections, the one that has waited longest for the head of a request is closed. If none
waits, a new connection can only ask for ``/ping``. So neither half-sent requests nor idle clients can make the process
silent.
"""

import asyncio
import logging
import resource
import select
from collections.abc import Iterable
from typing import Protocol
from weakref import WeakKeyDictionary, WeakSet

MAX_DESCRIPTORS = 65_536
"""Open files that the process asks for, if its hard limit allows as many."""

RESERVED_SHARE = 8
"""Divisor of the limit of open files: an eighth of it, up to ``MAX_RESERVED``, is kept for files, stores and pings."""

MIN_RESERVED, MAX_RESERVED = 32, 256

LOG_SECONDS = 5.0
"""Seconds between two log lines about too many connections."""

CLOSING_SECONDS = 10.0
"""Seconds without progress after which a connection that is being closed is cut off."""

GONE = select.POLLERR | select.POLLHUP

logger = logging.getLogger(__name__)


class Connection(Protocol):
    """A connection of any protocol."""

    transport: asyncio.Transport


def raise_descriptor_limit() -> int:
    """Raise the limit of open files as far as the system allows, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        soft = limit
    return limit if soft == resource.RLIM_INFINITY else soft


class ConnectionLimit:
    """The limit of open connections, below the limit of open files.

    Args:
        descriptors: files that the process may have open.

    Attributes:
        limit: connections that may be open. A few more can ask for ``/ping``.
        half_closed: connections whose clients send no more and wait for a response, or have gone.
    """

    def __init__(self, descriptors: int) -> None:
        self.limit = max(1, descriptors - min(MAX_RESERVED, max(MIN_RESERVED, descriptors // RESERVED_SHARE)))
        self.half_closed: WeakSet[Connection] = WeakSet()
        self._waiting: dict[Connection, None] = {}
        self._closed = self._surplus = 0
        self._logged_at = float("-inf")
        self._closing: WeakKeyDictionary[Connection, tuple[int, float]] = WeakKeyDictionary()

    def admit(self, connection: Connection, count: int, now: float) -> bool:
        """Admit a new connection. Returns False if it can only ask for ``/ping``.

        Args:
            connection: the new connection.
            count: open connections, this one included.
            now: the event loop's time, in seconds.
        """
        oldest = next(iter(self._waiting), None)
        self._waiting[connection] = None
        if count <= self.limit:
            return True
        if oldest is None:
            self._surplus += 1
        else:
            del self._waiting[oldest]
            oldest.transport.abort()
            self._closed += 1
        self._log(count, now)
        return oldest is not None

    def begin_waiting(self, connection: Connection) -> None:
        """Note that a connection waits for the head of a request."""
        self._waiting[connection] = None

    def end_waiting(self, connection: Connection) -> None:
        """Note that the head is complete, or that the connection has ended."""
        self._waiting.pop(connection, None)

    def _log(self, count: int, now: float) -> None:
        if now - self._logged_at >= LOG_SECONDS:
            logger.warning(
                "too many connections open=%d limit=%d closed_without_request=%d limited_to_ping=%d",
                count,
                self.limit,
                self._closed,
                self._surplus,
            )
            self._logged_at, self._closed, self._surplus = now, 0, 0

    def check(self, connections: Iterable[Connection], now: float) -> None:
        """Cut off connections whose clients have gone, or take nothing of the rest. ``now`` is the loop's time."""
        for connection in tuple(self.half_closed):
            if not connection.transport.is_closing() and is_gone(connection.transport):
                connection.transport.abort()
        for connection in tuple(connections):
            if connection.transport.is_closing():
                self._check_closing(connection, now)

    def _check_closing(self, connection: Connection, now: float) -> None:
        unsent = connection.transport.get_write_buffer_size()
        last_unsent, since = self._closing.get(connection, (-1, now))
        if unsent != last_unsent:
            self._closing[connection] = unsent, now
        elif now - since >= CLOSING_SECONDS:
            logger.info("slow reader disconnected unsent_bytes=%d idle_seconds=%d", unsent, CLOSING_SECONDS)
            connection.transport.abort()


def is_gone(transport: asyncio.Transport) -> bool:
    """Return True if the client has ended its connection in both directions, or has reset it."""
    sock = transport.get_extra_info("socket")
    poll = select.poll()
    poll.register(sock, 0)
    return any(events & GONE for _, events in poll.poll(0))
