"""uvicorn's protocols with a direct write for streams, the hand-over of HTTP/2 to gRPC, and tolerance for offers.

Rule: only this file uses private names of uvicorn. It changes nothing in its modules, and ``protocol_classes`` names
the release whose names it knows. Limits of heads, of connections and of their pace are uvicorn's options and the
concern of a proxy (docs/operations.md).

Rule: a server may ignore ``Upgrade`` (RFC 9110, section 7.8). ``curl --http2`` and ``java.net.http.HttpClient`` offer
h2c with the first request of a connection, which may have a body. httptools ends such a request after its head, so the
head is parsed once more without the offer, and the body behind it.

A handshake of WebSocket may repeat its headers, as `websockets` does with those of AWS's SDK; the first of each counts.
"""

import asyncio
import sys

import httptools
from starlette.types import Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from agui_container.protocols.grpc.handover import HTTP2
from agui_container.web.direct_writes import CONNECTION_EXTENSION

OFFER_HEADERS = frozenset((b"upgrade", b"http2-settings"))
"""Headers of an offer. ``Connection`` names them, too."""

HANDSHAKE_HEADERS = frozenset((b"connection", b"host", b"sec-websocket-key", b"sec-websocket-version", b"upgrade"))


class HttpProtocol(HttpToolsProtocol):
    """An HTTP/1.1 connection. The keep-alive timeout also bounds the time until the first byte of a request."""

    _offer_end: int | None = None
    """End of a head with an offer in the data that is being parsed."""

    def write_directly(self, send: Send, data: bytes) -> bool:
        """Write a chunk of a streamed response to the transport at once, if ASGI's ``send`` would do just that."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or send != cycle.send or not cycle.chunked_encoding or cycle.response_complete or not data:
            return False
        if cycle.disconnected or self.flow.write_paused or cycle.scope["method"] == "HEAD":
            return False
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        return True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        hand_over = self.app_state.get(HTTP2)
        self._opening = hand_over() if hand_over is not None else None
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer, which uvicorn leaves after a reset. It would keep the request and its token until it ends."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def release(self) -> asyncio.Transport:
        """Give the transport up to another protocol, before any request was read."""
        self.connections.discard(self)
        self._unset_keepalive_if_required()
        self.parser = None  # type: ignore[assignment] # uvicorn does the same in connection_lost
        return self.transport

    def data_received(self, data: bytes) -> None:
        if self._opening is not None:
            data = self._opening.read(self, data)
            if not data:
                return
            self._opening = None
        super().data_received(data)
        while self._offer_end is not None:  # the head is parsed again
            data, self._offer_end = self._head_without_offer() + data[self._offer_end :], None
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {CONNECTION_EXTENSION: self}  # type: ignore[dict-item] # uvicorn's type is narrower

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. Ignore trailers, because proxies do not check them as they check headers."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.scope is not self.scope:
            super().on_header(name, value)

    # --- offers of other protocols ---

    def on_headers_complete(self) -> None:
        if not self._has_offer():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self._has_offer():
            super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        first = dict(reversed(self.headers))
        repeatable = [each for each in self.headers if each[0] not in HANDSHAKE_HEADERS]
        self.scope["headers"] = [each for each in first.items() if each[0] in HANDSHAKE_HEADERS] + repeatable
        super().handle_websocket_upgrade()

    def _has_offer(self) -> bool:
        return self.parser.should_upgrade() and not self._should_upgrade() and self.parser.get_method() != b"CONNECT"

    def _unsupported_upgrade_warning(self) -> None:
        """Note where the head ends. uvicorn calls this while it handles the exception that says so."""
        error = sys.exception()
        if isinstance(error, httptools.HttpParserUpgrade) and self._has_offer():
            self._offer_end = error.args[0]

    def _head_without_offer(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        for name, value in self.headers:
            kept = _without_offer(value) if name == b"connection" else value
            if name not in OFFER_HEADERS and (kept or not value):
                lines.append(b"%b: %b" % (name, kept))
        return b"\r\n".join((*lines, b"", b""))


class SocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket connection."""

    def write_directly(self, send: Send, data: bytes) -> bool:
        """Write a text frame to the transport at once, if ASGI's ``send`` would do just that."""
        if send != self.send or self.conn.state is not State.OPEN:
            return False
        if self.transport.is_closing() or not self.writable.is_set():
            return False
        self.conn.send_text(data)
        self.transport.write(b"".join(self.conn.data_to_send()))
        return True

    async def run_asgi(self) -> None:
        self.scope["extensions"][CONNECTION_EXTENSION] = self  # type: ignore[assignment] # uvicorn's type is narrower
        await super().run_asgi()


def _without_offer(connection: bytes) -> bytes:
    options = [option.strip() for option in connection.split(b",")]
    return b", ".join(option for option in options if option.lower() not in OFFER_HEADERS)
