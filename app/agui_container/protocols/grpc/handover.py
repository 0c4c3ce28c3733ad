"""Protocol detection by the first bytes of a connection: HTTP/2 is handed over to gRPC, all else stays with uvicorn.

Rule: bytes are buffered only while they are a proper prefix of HTTP/2's 24-byte preface. A connection that stalls
inside the preface is closed by uvicorn's timeout for a first request. The first HTTP/2 connection imports gRPC, in
a thread, so that the import does not block other connections.

Source: RFC 9113, section 3.4.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

HTTP2 = "http2"
"""Key in the application's lifespan state, if it serves HTTP/2. The value is the ``Handover`` of the process."""

logger = logging.getLogger(__name__)


class HttpConnection(Protocol):
    """Connection of the HTTP server that has not read a request yet."""

    transport: asyncio.Transport
    app_state: dict[str, Any]
    """State of the lifespan, for the scope of requests."""

    @property
    def app(self) -> Callable[..., Awaitable[None]]:
        """The ASGI application."""

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        """Tasks of the application, which the HTTP server waits for at its end."""

    @property
    def connections(self) -> set[asyncio.Protocol]:
        """Open connections, which the HTTP server shuts down at its end."""

    def release(self) -> asyncio.Transport:
        """Give up the transport."""


class Http2Server(Protocol):
    """Factory of the protocols of HTTP/2 connections."""

    def connect(self, connection: HttpConnection) -> asyncio.Protocol:
        """Return the protocol that replaces the HTTP server's.

        It has ``shutdown()``, and is in ``connections`` while the connection is open.
        """


Load = Callable[[], Callable[[], Http2Server]]
"""Function that imports gRPC, in a thread, and returns a factory of its server, which is called on the event loop."""


class Handover:
    """Hands connections over to gRPC. A call returns the ``ProtocolDetector`` of a new connection."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._server: Http2Server | None = None
        self._loading: asyncio.Task[None] | None = None
        self._waiting: list[tuple[HttpConnection, bytes]] = []

    def __call__(self) -> "ProtocolDetector":
        return ProtocolDetector(self)

    def hand_over(self, connection: HttpConnection, data: bytes) -> None:
        """Give an HTTP/2 connection its protocol. ``data`` are the bytes that have been read from it."""
        if self._server is not None:
            switch_protocol(connection, data, self._server)
            return
        connection.transport.pause_reading()
        self._waiting.append((connection, data))
        if self._loading is None:
            self._loading = asyncio.create_task(self._import(), name="import gRPC")

    async def _import(self) -> None:
        try:
            make = await asyncio.to_thread(self._load)
            self._server = make()
        except Exception:
            logger.exception("gRPC import failed")
        finally:
            waiting, self._waiting, self._loading = self._waiting, [], None
            for connection, data in waiting:
                if self._server is None or connection.transport.is_closing():
                    connection.transport.close()
                else:
                    connection.transport.resume_reading()
                    switch_protocol(connection, data, self._server)

    async def aclose(self) -> None:
        if self._loading is not None:
            with contextlib.suppress(asyncio.CancelledError):
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


def switch_protocol(connection: HttpConnection, data: bytes, server: Http2Server) -> None:
    protocol = server.connect(connection)
    transport = connection.release()
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    protocol.data_received(data)
