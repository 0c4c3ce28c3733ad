"""HTTP/2 connections: grpclib's protocol, with the limits and repairs that a public server needs.

A stream is a gRPC call by its content type. Every other stream is an HTTP request (``http_request``).

Rule: each repair of grpclib 0.4.9 has a test. An unknown frame is ignored. An empty DATA frame does not end a message.
GOAWAY is sent before a close, and open calls end with a status.

The limit of a message's size and gzip are in ``call``.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import cast

from grpclib.config import Configuration
from grpclib.const import Handler as Method
from grpclib.const import Status
from grpclib.encoding.proto import ProtoCodec
from grpclib.events import _DispatchServerEvents
from grpclib.exceptions import GRPCError
from grpclib.protocol import Connection, EventsProcessor, H2Protocol, Stream
from grpclib.server import Handler
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, Event
from h2.settings import SettingCodes
from hyperframe.frame import GoAwayFrame

from agui_container.log_values import format_fields
from agui_container.protocols.grpc.handover import HttpConnection
from agui_container.protocols.grpc.http_request import Headers, HttpRequest, begin_request

MAX_STREAMS = 100
"""Calls and requests that one connection may have open."""

GRPC = "application/grpc"
"""Beginning of the content type of a gRPC call."""

STREAM_WINDOW = 128 * 1024
CONNECTION_WINDOW = 256 * 1024
"""Bytes that a client may send before the application has read them."""

END_SECONDS = 0.2
"""Seconds after a shutdown has begun until open calls are ended. Finished calls can send their status until then."""

LINGER_SECONDS = 5.0
"""Seconds that a client has to close its connection after GOAWAY and its last call. A client that has not read the
status of a call yet, or has its side of the call still open, would report a connection that was closed on it."""

PING_SECONDS = 60.0
PONG_SECONDS = 20.0
"""Seconds between two pings to a client, and seconds in which the client must answer one."""

H2_CONFIG = H2Configuration(client_side=False, header_encoding="latin-1", validate_outbound_headers=False)
CONFIG = Configuration(
    _keepalive_time=PING_SECONDS,
    _keepalive_timeout=PONG_SECONDS,
    _keepalive_permit_without_calls=True,
    _http2_max_pings_without_data=0,
    _http2_min_sent_ping_interval_without_data=PING_SECONDS / 2,
    http2_stream_window_size=STREAM_WINDOW,
    http2_connection_window_size=CONNECTION_WINDOW,
).__for_server__()

logger = logging.getLogger(__name__)


class H2State(Connection):
    """A connection that may be closed while its data are handled."""

    def flush(self) -> None:
        if not self.is_closing():
            super().flush()


class H2EventDispatcher(EventsProcessor):
    def process(self, event: Event) -> None:
        if isinstance(event, DataReceived) and not event.flow_controlled_length:
            return  # grpclib would read it as the end of the stream
        if type(event) in getattr(self, "processors", ()):
            super().process(event)


class CallTasks(Handler):
    def __init__(self, methods: dict[str, Method], connection: HttpConnection, on_end: Callable[[], None]) -> None:
        super().__init__(methods, ProtoCodec(), None, _DispatchServerEvents())
        self._connection = connection
        self._requests: dict[Stream, HttpRequest] = {}
        self._on_end = on_end
        self.draining = False

    def accept(self, stream: Stream, headers: Headers, release_stream: Callable[[], None]) -> None:
        stream.headers = headers

        def release() -> None:
            self._requests.pop(stream, None)
            release_stream()
            self._on_end()

        if self.draining:
            stream.reset_nowait(ErrorCodes.REFUSED_STREAM)
            release()
            return
        if dict(headers).get("content-type", "").startswith(GRPC):
            super().accept(stream, headers, release)
        else:
            self._requests[stream] = begin_request(self._connection, stream, headers, release)

    def cancel(self, stream: Stream) -> None:
        if stream in self._requests:
            self._requests[stream].disconnect()
        else:
            super().cancel(stream)

    def close(self) -> None:
        for request in self._requests.values():
            request.disconnect()
        super().close()


class GrpcProtocol(H2Protocol):
    handler: CallTasks
    connection: H2State

    def __init__(self, methods: dict[str, Method], connection: HttpConnection) -> None:
        super().__init__(CallTasks(methods, connection, self._close_if_done), CONFIG, H2_CONFIG)
        self._connections = connection.connections
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the settings. Like grpclib's method, with a limit of open calls and the classes of this module."""
        self.transport = cast(asyncio.Transport, transport)
        h2 = H2Connection(config=self.h2_config)
        h2.local_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = MAX_STREAMS
        h2.local_settings[SettingCodes.INITIAL_WINDOW_SIZE] = STREAM_WINDOW
        h2.local_settings.acknowledge()
        h2.initiate_connection()
        h2.increment_flow_control_window(CONNECTION_WINDOW - 65_535)
        self.connection = H2State(h2, self.transport, config=self.config)
        self.connection.flush()
        self.connection.initialize()
        self.processor = H2EventDispatcher(self.handler, self.connection)
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Handle bytes of the client. Bytes that are not HTTP/2 end the connection."""
        if self.connection.is_closing():
            return
        try:
            events = self.connection.feed(data)
        except Exception as error:  # noqa: BLE001 - h2 raises exceptions of any type for malformed headers
            logger.info("HTTP/2 connection closed %s", format_fields({"reason": "protocol error", "cause": error}))
            self.connection.flush()  # h2 has prepared a GOAWAY with the reason, if the error is one of its own
            self.processor.close("Protocol error")
            return
        self.connection.flush()
        for event in events:
            self.processor.process(event)
        self.connection.flush()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.discard(self)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Refuse new calls, end open ones with UNAVAILABLE soon. uvicorn calls this when it shuts down.

        The client closes the connection after the last call. The server closes it if the client does not.
        """
        if self.handler.draining or self.connection.is_closing():
            return
        self.handler.draining = True
        last_stream = self.connection._connection.highest_inbound_stream_id
        self.transport.write(GoAwayFrame(0, last_stream, ErrorCodes.NO_ERROR).serialize())  # h2's own would end calls
        self._loop.call_later(END_SECONDS, self._end_calls)
        self._close_if_done()

    def _end_calls(self) -> None:
        for stream in list(self.processor.streams.values()):
            if stream.wrapper is not None:
                stream.wrapper.cancel(GRPCError(Status.UNAVAILABLE, "The server is shutting down."))

    def _close_if_done(self) -> None:
        """Close the connection after GOAWAY and its last call."""
        if not self.connection.is_closing() and not self.processor.streams and self.handler.draining:
            self._loop.call_later(LINGER_SECONDS, self.processor.close, "Shut down")
