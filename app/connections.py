"""Connections as uvicorn keeps them, within bounds: before a request is anybody's, nothing else looks at what it costs.

Rule: nothing is read or answered differently here; what no client sends is cut off. uvicorn's parsers take a head of
any size and at any pace, any number of requests that are sent ahead, and frames for as long as they come, and uvloop
reads up to eight megabytes of one connection before it looks at another. What a connection holds for what seldom comes
is made when it does: empty, the three queues below took 2 KB of each stream. What a token touches lies together
(decision 0037).
"""

import asyncio
from collections import deque
from typing import Any

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.frames import CloseCode, Frame

MAX_HEAD = 128_000
"""Bytes that may come while nothing becomes of them: no head is complete, no piece of a body, no end."""

MAX_FRAMES = 10_000
"""Fragments of one message, and control frames of one read."""

HTTP2 = "http2"
"""Where an application's lifespan state has what reads the first bytes of connections, if it serves HTTP/2."""

REFUSED = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Flow(FlowControl):
    """Whether a client takes what is sent. Nobody waits for that until it does not."""

    __slots__ = ("_transport", "read_paused", "write_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = self.write_paused = False

    def pause_writing(self) -> None:
        """Whoever sends has to wait from now on."""
        if not self.write_paused:
            self._is_writable_event = asyncio.Event()
        super().pause_writing()


class News(asyncio.Event):
    """Something has come of a request, or it has lost its client. One waits for it: the application."""

    def __init__(self) -> None:
        super().__init__()
        self._waiters = []  # type: ignore[assignment] # in place of a deque, which is made for many


class Answer(RequestResponseCycle):
    """An answer. A piece of a stream is written by itself: for each token, asking what else it might be is felt."""

    # Slots: what is asked for each token lies together, outside of a dictionary.
    __slots__ = ("disconnected", "flow", "streams", "transport")

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as uvicorn has it
        super().__init__(*args, **kwargs)
        self.streams = False
        """Whether it has begun, goes on, and is sent in chunks."""

    def write_piece(self, body: bytes) -> bool:
        """What sending a piece of a body does, where that can be done at once. Raises what the transport raises."""
        if not self.streams or self.disconnected or self.flow.write_paused or not body:
            return False
        self.transport.write(b"%x\r\n%b\r\n" % (len(body), body))
        return True

    async def send(self, message: ASGISendEvent) -> None:
        """Send. Raises what uvicorn raises for what may not come now."""
        goes_on = message["type"] == "http.response.body" and message.get("more_body", False)
        if goes_on and self.write_piece(message.get("body", b"")):  # type: ignore[arg-type] # a message of that type
            return
        await super().send(message)
        self.streams = bool(self.chunked_encoding) and not self.response_complete and self.scope["method"] != "HEAD"


httptools_impl.RequestResponseCycle = Answer  # type: ignore[misc] # it makes what this name says, and has no other way


class Requests(HttpToolsProtocol):
    """An HTTP connection. Its wait for a head ends with the head, not with the head's first byte."""

    # Slots: with one attribute more its dictionary would share no keys, which takes 1.3 KB of each connection.
    __slots__ = ("_in_head", "_opening", "_reads", "_unused")

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Wait for the first head as for every other."""
        self._unused, self._in_head, self._reads = 0, True, False
        hand_over = self.app_state.get(HTTP2)
        self._opening = hand_over() if hand_over is not None else None
        super().connection_made(transport)
        self.flow = Flow(transport)
        self.pipeline = ()  # type: ignore[assignment] # until a request is sent ahead
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read, and count what nothing becomes of."""
        if self._opening is not None:
            data = self._opening.read(self, data)
            if not data:
                return
            self._opening = None
        self._unused += len(data)
        self._reads = True
        super().data_received(data)
        self._reads = False
        if self._unused > MAX_HEAD and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def release(self) -> asyncio.Transport:
        """Give the transport up to another protocol, before any request was read."""
        self.connections.discard(self)
        super()._unset_keepalive_if_required()
        self.parser = None  # type: ignore[assignment] # as uvicorn has it
        return self.transport

    def on_message_begin(self) -> None:
        """A head has begun."""
        super().on_message_begin()
        self._in_head = True
        self._wait()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header. Behind a body it is none: what stands before a server has not looked at it there."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is complete."""
        if not (self.pipeline or self._is_idle()):
            self.pipeline = deque()
        super().on_headers_complete()
        if not self._is_idle():
            self.cycle.message_event = News()
        self._unused, self._in_head = 0, False
        super()._unset_keepalive_if_required()

    def _is_idle(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def on_body(self, body: bytes) -> None:
        """A piece of a body."""
        self._unused = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The end of a request."""
        self._unused = 0
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """The connection goes on as a WebSocket; the parser, which leads back here, goes as at a connection's end."""
        super().handle_websocket_upgrade()
        self.parser = None  # type: ignore[assignment] # as uvicorn has it

    def on_response_complete(self) -> None:
        """The next request. While others wait none is read: each answer would let in more than it takes away."""
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()

    def _unset_keepalive_if_required(self) -> None:
        if not self._reads:
            super()._unset_keepalive_if_required()

    def _wait(self) -> None:
        super()._unset_keepalive_if_required()
        wait = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)
        self.timeout_keep_alive_task = wait


class Frames(WebSocketsSansIOProtocol):
    """A WebSocket connection."""

    _controls = 0

    def data_received(self, data: bytes) -> None:
        """Read, and let the other connections have their turn."""
        self._controls = 0
        try:
            super().data_received(data)
        except InvalidState:  # a frame that is no text, and behind it a goodbye, which has its answer already
            self.handle_parser_exception()
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self.transport.write(REFUSED)
            self.transport.close()
        elif not self.read_paused and not self.transport.is_closing():
            self.transport.pause_reading()
            self.loop.call_soon(self._read_on)

    def shutdown(self) -> None:
        """Say goodbye. Where it is said already nothing may be raised: uvicorn's server would stop to stop."""
        try:
            super().shutdown()
        except InvalidState:
            self.transport.close()

    def handle_cont(self, event: Frame) -> None:
        """A fragment."""
        super().handle_cont(event)
        if len(self.frames) > MAX_FRAMES:
            self._cut_off(CloseCode.MESSAGE_TOO_BIG)

    def handle_ping(self) -> None:
        """Answer it; a peer that takes nothing gets no more answers, which would be kept for it."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()
        self._count()

    def handle_pong(self, event: Frame) -> None:
        """An answer."""
        super().handle_pong(event)
        self._count()

    def _count(self) -> None:
        self._controls += 1
        if self._controls > MAX_FRAMES:
            self._cut_off(CloseCode.POLICY_VIOLATION)

    def _cut_off(self, code: CloseCode) -> None:
        self.frames = []
        if not self.close_sent:
            self.conn.fail(code)
            self.handle_parser_exception()

    def _read_on(self) -> None:
        if not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()
