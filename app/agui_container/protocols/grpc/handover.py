"""Protocol detection by the first bytes of a connection: HTTP/2 is handed over to gRPC, all else stays with uvicorn.

Rule: bytes are buffered only while they are a proper prefix of HTTP/2's 24-byte preface. A connection that stalls
inside the preface is closed by uvicorn's timeout for a first request. The first HTTP/2 connection imports gRPC, in
a thread, so that the import does not block other connections.

Source: RFC 9113, section 3.4.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

HTTP2 = "http2"
"""Key in the application's lifespan state, if it serves HTTP/2. The value is the ``Handover`` of the process."""

logger = logging.getLogger(__name__)


class HttpConnection(Protocol):
    """Connection of the HTTP server that has not read a request yet.

    Attributes:
        app_state: state of the lifespan, for the scope of requests.
        app: the ASGI application.
        tasks: tasks of the application, which the HTTP server waits for at its end.
        connections: open connections, which the HTTP server shuts down at its end.
    """

    transport: asyncio.Transport
    app_state: dict[str, Any]

    @property
    def app(self) -> Callable[..., Awaitable[None]]: ...

    @property
    def tasks(self) -> set[asyncio.Task[None]]: ...

    @property
    def connections(self) -> set[asyncio.Protocol]: ...

    def release(self) -> asyncio.Transport:
        """Give up the transport."""


Connect = Callable[[HttpConnection], asyncio.Protocol]
"""Makes the protocol that replaces the HTTP server's. It has ``shutdown()``, and is in ``connections`` while open."""


class Handover:
    """Hands connections over to gRPC, which ``load`` imports. A call returns the detector of a new connection."""

    def __init__(self, load: Callable[[], Connect]) -> None:
        self._load = load
        self._loading: asyncio.Task[Connect] | None = None

    def __call__(self) -> "ProtocolDetector":
        return ProtocolDetector(self)

    def hand_over(self, connection: HttpConnection, data: bytes) -> None:
        """Give an HTTP/2 connection its protocol. ``data`` are the bytes that have been read from it."""
        connection.transport.pause_reading()
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(self._load), name="import gRPC")
        self._loading.add_done_callback(partial(switch_protocol, connection, data))

    async def aclose(self) -> None:
        if self._loading is not None:
            await asyncio.wait([self._loading])


class ProtocolDetector:
    """Reader of the first bytes of one connection."""

    __slots__ = ("_buffer", "_handover")

    def __init__(self, handover: Handover) -> None:
        self._handover = handover
        self._buffer = b""

    def read(self, connection: HttpConnection, data: bytes) -> bytes:
        """Return the bytes for the HTTP server: none while HTTP/2 is possible, and none of an HTTP/2 connection."""
        buffer = self._buffer + data
        if len(buffer) < len(PREFACE) and PREFACE.startswith(buffer):
            self._buffer = buffer
            return b""
        if not buffer.startswith(PREFACE):
            return buffer
        self._buffer = b""
        self._handover.hand_over(connection, buffer)
        return b""


def switch_protocol(connection: HttpConnection, data: bytes, loading: asyncio.Task[Connect]) -> None:
    """Replace the protocol of a connection once gRPC is imported. Without gRPC the connection is closed."""
    error = None if loading.cancelled() else loading.exception()
    if error is not None:
        logger.error("gRPC import failed", exc_info=error)
    if error is not None or loading.cancelled() or connection.transport.is_closing():
        connection.transport.close()
        return
    protocol = loading.result()(connection)
    transport = connection.release()
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    transport.resume_reading()
    protocol.data_received(data)
