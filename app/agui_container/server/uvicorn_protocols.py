"""uvicorn's HTTP and WebSocket protocols, with limits on what one client can make a connection cost.

Rule: this is the only file that uses private names of uvicorn and websockets. It changes nothing in their modules.
pyproject.toml pins their minor versions for this file.

uvicorn accepts a head of any size at any pace, any number of pipelined requests and any number of frames. uvloop reads
up to eight megabytes from one connection before it serves another one. The subclasses below bound each of these.
"""

import asyncio
from typing import NoReturn

from starlette.types import Send
from uvicorn._types import ASGI3Application, ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.frames import CloseCode, Frame

from agui_container.engine.admission.quota import IdentityQuota, Limit, QuotaLease
from agui_container.protocol.errors import AppError
from agui_container.server.connections import OVERLOADED_HANDSHAKE, answer_overloaded, connection_limit
from agui_container.transports.caller_middleware import QUOTA
from agui_container.transports.event_stream import CONNECTION_EXTENSION
from agui_container.transports.grpc.handover import HTTP2, PREFACE

LINGER_SECONDS = 5.0
"""Seconds in which a client may still send a body or its answer to a close frame, so that it reads what it was sent."""

MESSAGE_SECONDS = 60.0
"""Seconds in which a client must have sent a WebSocket message whose first frame has arrived."""

MAX_UNPARSED = 128_000
"""Bytes a client may send without completing a head, a piece of a body or a request."""

MAX_HEAD = 128_000
"""Memory of one head: its URL, and the name, the value and ``HEADER_BYTES`` of each header."""

HEADER_BYTES = 150
"""Memory of a parsed header, besides its name and its value."""

MAX_PIPELINED = 16
"""Requests of a connection that may wait behind the one that is being answered."""

MAX_FRAMES = 10_000
"""Fragments of one message, and control frames of one read."""

MAX_MESSAGES = 1_000
"""Messages of one WebSocket that wait for the application. Ten times as many take a tenth of a second to parse."""

PIECE_BYTES = 4_096
"""Bytes that are parsed before the messages are counted."""

LARGE_HEAD = "The head of the request is too large."

BAD_HANDSHAKE = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class HttpProtocol(HttpToolsProtocol):
    """An HTTP/1.1 connection, which counts in ``limit``. The keep-alive timeout also bounds the time for a head."""

    _unparsed_bytes = 0
    _head_bytes = 0
    """Memory of the head that is being read."""
    _is_in_head = True
    """False while a body or trailers are being read."""
    _refusal: str | None = None
    """Text for the client once parsing has stopped."""
    _is_reading = False
    _is_surplus = False
    """True for a connection beyond the limit, which can only ask for ``/ping``."""
    _active_cycle: RequestResponseCycle | None = None
    """The request that is being answered. ``cycle`` is the latest one, which may still wait in ``pipeline``."""

    def write_chunk(self, send: Send, body: bytes) -> bool:
        """Write a chunk of a streamed response to the transport at once, if ASGI's ``send`` would do just that.

        Args:
            send: the application's ``send``. Middleware that wraps it must see every message, so nothing is written
                past a wrapped one.
            body: the content of the chunk.

        Returns:
            False if the chunk must be sent with ``send``, because ``send`` is wrapped or belongs to another request,
            the response has not begun, is complete or is not chunked, the request is a HEAD, the client has left or is
            slow, or ``body`` is empty.
        """
        cycle = self._active_cycle
        if cycle is None or send != cycle.send or not cycle.chunked_encoding or cycle.response_complete or not body:
            return False
        if cycle.disconnected or self.flow.write_paused or cycle.scope["method"] == "HEAD":
            return False
        self.transport.write(b"%x\r\n%b\r\n" % (len(body), body))
        return True

    # --- the connection ---

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Start the timeout for the first head."""
        super().connection_made(transport)
        self.limit = connection_limit(self.app_state)
        self._is_surplus = not self.limit.admit(transport)
        hand_over = self.app_state.get(HTTP2)
        self._opening = hand_over() if hand_over is not None else None
        self._restart_head_timeout(self.timeout_keep_alive)

    def eof_received(self) -> bool:  # type: ignore[override] # as asyncio has it
        """Keep a connection open if its client waits for a response. A stream ends, because its client has left."""
        cycle = self._active_cycle
        if cycle is None or cycle.response_complete or self.cycle.more_body or cycle.chunked_encoding:
            return False
        self.cycle.keep_alive = False
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the application, and release the request.

        uvicorn cancels the keep-alive timer only if ``exc`` is None. After an RST the timer would keep the request and
        its bearer token for 75 seconds. uvicorn also tells only the latest of several pipelined requests.
        """
        if self._active_cycle is not None and not self._active_cycle.response_complete:
            self._active_cycle.disconnected = True
            self._active_cycle.message_event.set()
        super().connection_lost(exc)
        super()._unset_keepalive_if_required()
        self.limit.remove(self.transport)
        self._release_request()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection to ``WebSocketProtocol``, unless a response is still being sent on it."""
        if self._is_surplus:
            self.transport.write(OVERLOADED_HANDSHAKE)
            self.transport.close()
            return
        if not self._is_idle():
            self.send_400_response("A connection cannot be upgraded while a response is being sent.")
            return
        super().handle_websocket_upgrade()
        self.parser = None  # type: ignore[assignment] # uvicorn does the same in connection_lost
        self._release_request()

    def release(self) -> asyncio.Transport:
        """Give the transport up to another protocol, before any request was read."""
        self.connections.discard(self)
        super()._unset_keepalive_if_required()
        self.limit.end_waiting(self.transport)
        self.parser = None  # type: ignore[assignment] # uvicorn does the same in connection_lost
        return self.transport

    def _release_request(self) -> None:
        """Drop all references to requests. They refer back to this protocol, by ``CONNECTION_EXTENSION``."""
        self.pipeline.clear()
        self.scope = self.headers = self.cycle = None  # type: ignore[assignment] # as uvicorn initializes them
        self._active_cycle = None

    # --- reading ---

    def data_received(self, data: bytes) -> None:
        """Parse the data. Refuse a head that is too large."""
        if self._opening is not None:
            if self._is_surplus and data.startswith(PREFACE[:1]):  # a request for ``/ping`` begins with another byte
                self._is_surplus = not self.limit.readmit(self.transport)
            data = data if self._is_surplus else self._opening.read(self, data)
            if not data:
                return
            self._opening = None
        self._unparsed_bytes += len(data)
        self._is_reading = True
        super().data_received(data)
        self._is_reading = False
        if self._unparsed_bytes > MAX_UNPARSED and not self.transport.is_closing():
            self.send_400_response(LARGE_HEAD)

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be parsed. uvicorn calls this for every exception of a method below."""
        super().send_400_response(self._refusal or msg)

    def _refuse(self, reason: str) -> NoReturn:
        """Stop parsing. uvicorn answers the exception with ``send_400_response``."""
        self._refusal = reason
        raise ValueError(reason)

    def on_message_begin(self) -> None:
        """Begin a head. Refuse one more request behind the one that is being answered than may wait."""
        if len(self.pipeline) >= MAX_PIPELINED:
            self._refuse("Too many requests wait on this connection.")
        self._is_in_head, self._head_bytes = True, 0
        super().on_message_begin()
        self.scope["extensions"] = {CONNECTION_EXTENSION: self}  # type: ignore[dict-item] # uvicorn's type is narrower
        self._restart_head_timeout(self.timeout_keep_alive)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. Ignore trailers, because proxies do not check them as they check headers."""
        if self._is_in_head:
            super().on_header(name, value)
            self._head_bytes += len(name) + len(value) + HEADER_BYTES
            if self._head_bytes > MAX_HEAD:
                self._refuse(LARGE_HEAD)

    def on_headers_complete(self) -> None:
        """End the head."""
        if self._is_surplus and self.url != b"/ping":
            self._is_surplus = not self.limit.readmit(self.transport)
            if self._is_surplus:
                self.app = answer_overloaded
        if self._head_bytes + len(self.url) > MAX_HEAD:
            self._refuse(LARGE_HEAD)
        hosts = [name for name, _ in self.headers].count(b"host")
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):  # RFC 9112, section 3.2
            self._refuse("A request names its host once, in the header Host.")
        super().on_headers_complete()
        self._is_in_head, self._unparsed_bytes = False, 0
        super()._unset_keepalive_if_required()
        self.limit.end_waiting(self.transport)

    def on_body(self, body: bytes) -> None:
        """Add a piece of the body."""
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request."""
        self._unparsed_bytes = 0
        super().on_message_complete()
        if self._active_cycle is not None and self.cycle.response_complete and not self.transport.is_closing():
            self._restart_head_timeout(self.timeout_keep_alive)

    def on_response_complete(self) -> None:
        """Start the next pipelined request. While others wait, nothing is read, or each response would admit more."""
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()
        elif not self._is_idle():
            return  # the last of the pipelined requests has begun
        elif self.cycle.more_body and not self.transport.is_closing():
            self._restart_head_timeout(LINGER_SECONDS)
        else:
            self.limit.begin_waiting(self.transport)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._active_cycle = cycle
        if self._is_surplus:
            cycle.keep_alive = False
        super()._start_asgi_task(cycle, app)

    def _is_idle(self) -> bool:
        return self._active_cycle is None or self._active_cycle.response_complete

    def _unset_keepalive_if_required(self) -> None:
        """Do nothing while uvicorn reads: it would stop the timer at the first byte of a head."""
        if not self._is_reading:
            super()._unset_keepalive_if_required()

    def _restart_head_timeout(self, seconds: float) -> None:
        super()._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket connection."""

    _control_frames = 0
    """Pings and pongs of the current read."""
    _message_bytes = 0
    """Bytes of frames that the application has not received yet, without the first one of an incomplete message."""
    _message_begun: float | None = None
    """Time at which the first bytes of an incomplete message arrived."""
    _lease: QuotaLease | None = None

    def data_received(self, data: bytes) -> None:
        """Parse the data. Read on in the next turn of the event loop, so that other connections are served first."""
        self._control_frames = 0
        try:
            self._parse(data)
        except InvalidState:  # the answer to invalid UTF-8 fails if a close frame in the same read was answered already
            self.handle_parser_exception()
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self.transport.write(BAD_HANDSHAKE)
            self.transport.close()
        elif not self.transport.is_closing():
            self._count_bytes()
            if not self.read_paused and not self.transport.is_closing():
                self.transport.pause_reading()
                self.loop.call_soon(self._resume_reading)

    async def receive(self) -> ASGIReceiveEvent:
        """Return the next message. From then on the application counts its bytes."""
        message = await super().receive()
        if self.queue.empty():
            self._message_bytes = 0
            self._count_bytes()
        return message

    def _parse(self, data: bytes) -> None:
        """Parse the data piece by piece. Close the connection if it has too many messages for the application."""
        for start in range(0, len(data), PIECE_BYTES):
            super().data_received(data[start : start + PIECE_BYTES])
            if self.queue.qsize() > MAX_MESSAGES:
                self._fail(CloseCode.POLICY_VIOLATION)
            if self.transport.is_closing():
                return

    async def send(self, message: ASGISendEvent) -> None:
        """Send a message, and wait until the client has taken most of it. uvicorn waits before the next message.

        uvicorn would log an error after a refused handshake.
        """
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and self.close_sent:
            self.handshake_complete = True
        if not self.writable.is_set():
            await self.writable.wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the application, and release the connection and the bytes of an incomplete message."""
        super().connection_lost(exc)
        connection_limit(self.app_state).remove(self.transport)
        if self._lease is not None:
            self._lease.release()

    def send_keepalive_ping(self) -> None:
        """Send a ping, unless the client takes too long for a message."""
        if self._message_begun is not None and self.loop.time() - self._message_begun > MESSAGE_SECONDS:
            self._fail(CloseCode.POLICY_VIOLATION)
        super().send_keepalive_ping()

    def _count_bytes(self) -> None:
        """Count the bytes that have arrived and that the application has not received as bytes in flight."""
        partial = len(self.conn.reader.buffer) + sum(map(len, self.frames[:1]))
        is_incomplete = partial > 0 or bool(self.frames)
        self._message_begun = (self._message_begun or self.loop.time()) if is_incomplete else None
        if self._lease is None:
            quota: IdentityQuota | None = self.scope["state"].get(QUOTA) if self.handshake_initiated else None
            if quota is None:
                return
            self._lease = QuotaLease(quota, Limit.BYTES_IN_FLIGHT)
        try:
            self._lease.resize(partial + self._message_bytes)
        except AppError as error:
            self._fail(CloseCode.TRY_AGAIN_LATER, error.code)

    def shutdown(self) -> None:
        """Begin to close. uvicorn would not wait for the client's answer, which could then reset the connection."""
        try:
            if not self.handshake_complete:
                super().shutdown()
            elif not self.close_sent and not self.transport.is_closing():
                self.stop_keepalive()
                self.conn.send_close(CloseCode.SERVICE_RESTART)
                self.queue.put_nowait({"type": "websocket.disconnect", "code": CloseCode.SERVICE_RESTART})
                self.transport.write(b"".join(self.conn.data_to_send()))
                self.close_sent, self.read_paused = True, False
                self.transport.resume_reading()
                self.close_timer = self.loop.call_later(LINGER_SECONDS, self.transport.close)
        except InvalidState:  # it would stop the shutdown of the server
            self.transport.close()

    def handle_cont(self, event: Frame) -> None:
        """Add a fragment. Close the connection if the message has too many."""
        self._message_bytes += len(event.data)
        super().handle_cont(event)
        if len(self.frames) > MAX_FRAMES:
            self._fail(CloseCode.MESSAGE_TOO_BIG)

    def send_receive_event_to_app(self) -> None:
        """Hand a complete message to the application, and count its first frame. ``handle_cont`` counts the others."""
        self._message_bytes += len(self.frames[0])
        super().send_receive_event_to_app()

    def handle_ping(self) -> None:
        """Answer a ping, unless the peer does not read: its pongs would pile up in memory."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()
        self._count_control_frame()

    def handle_pong(self, event: Frame) -> None:
        """Accept a pong."""
        super().handle_pong(event)
        self._count_control_frame()

    def _count_control_frame(self) -> None:
        self._control_frames += 1
        if self._control_frames > MAX_FRAMES:
            self._fail(CloseCode.POLICY_VIOLATION)

    def _fail(self, code: CloseCode, reason: str = "") -> None:
        self.frames = []
        if not self.close_sent:
            self.conn.fail(code, reason)
            self.handle_parser_exception()

    def _resume_reading(self) -> None:
        if not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()
