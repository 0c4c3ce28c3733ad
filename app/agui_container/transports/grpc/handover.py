"""The first bytes of a connection: HTTP/2 is handed over to gRPC, everything else stays with uvicorn.

Rule: bytes are held back only while they are a true prefix of HTTP/2's 24-byte preface. A connection that stalls inside
the preface still has uvicorn's wait for a first head, which closes it. gRPC is imported by the first HTTP/2 connection,
in a thread, because it takes a tenth of a second in which other connections are served. Source: RFC 9113, section 3.4.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Protocol

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

logger = logging.getLogger(__name__)


class HttpConnection(Protocol):
    """A connection of the HTTP server that has not read a request yet."""

    transport: asyncio.Transport

    @property
    def connections(self) -> set[asyncio.Protocol]:
        """The connections that the HTTP server shuts down at its end."""

    def release(self) -> asyncio.Transport:
        """Give up the transport."""


class Http2Server(Protocol):
    """Makes the protocols of HTTP/2 connections."""

    def connect(self, connections: "set[asyncio.Protocol]") -> asyncio.Protocol:
        """A protocol that keeps itself in ``connections`` while its connection is open, and has ``shutdown()``."""


Load = Callable[[], Callable[[], Http2Server]]
"""Imports gRPC, and gives a function that makes its server. The import runs in a thread, the function on the loop."""


class Handover:
    """Hands connections over; callable for the ``Opening`` of a new connection.

    Args:
        load: imports the server when it is first needed.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self._server: Http2Server | None = None
        self._loading: asyncio.Task[None] | None = None
        self._waiting: list[tuple[HttpConnection, bytes]] = []

    def __call__(self) -> "Opening":
        """The reader of a new connection's first bytes."""
        return Opening(self)

    def hand_over(self, connection: HttpConnection, data: bytes) -> None:
        """Give an HTTP/2 connection its protocol, now or when gRPC is imported. ``data`` has been read of it."""
        if self._server is not None:
            switch(connection, data, self._server)
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
                    switch(connection, data, self._server)

    async def aclose(self) -> None:
        """Wait for an import that has begun."""
        if self._loading is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([self._loading])


class Opening:
    """The first bytes of one connection."""

    __slots__ = ("_handover", "_held")

    def __init__(self, handover: Handover) -> None:
        self._handover = handover
        self._held = b""

    def read(self, connection: HttpConnection, data: bytes) -> bytes:
        """The bytes that the HTTP server is to read: none while they may be HTTP/2's, and none of HTTP/2's."""
        held = self._held + data
        if len(held) < len(PREFACE) and PREFACE.startswith(held):
            self._held = held
            return b""
        if not held.startswith(PREFACE):
            return held
        self._held = b""
        self._handover.hand_over(connection, held)
        return b""


def switch(connection: HttpConnection, data: bytes, server: Http2Server) -> None:
    """Put an HTTP/2 protocol in the place of the HTTP server's."""
    protocol = server.connect(connection.connections)
    transport = connection.release()
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    protocol.data_received(data)
