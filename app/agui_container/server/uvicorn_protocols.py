"""uvicorn's HTTP protocol with two additions: a direct write for streams, and the hand-over of HTTP/2 to gRPC.

Rule: only this file and ``upgrade_offers`` use private names of uvicorn. They change nothing in its modules, and
``protocol_classes`` names the release whose names they know. Limits of heads, of connections and of their pace are
uvicorn's options and the concern of a proxy (docs/operations.md).
"""

import asyncio

from starlette.types import Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from agui_container.protocols.grpc.handover import HTTP2
from agui_container.server.upgrade_offers import OfferIgnoringProtocol
from agui_container.web.event_stream import CONNECTION_EXTENSION


class HttpProtocol(OfferIgnoringProtocol):
    """An HTTP/1.1 connection. The keep-alive timeout also bounds the time until the first byte of a request."""

    def write_chunk(self, send: Send, body: bytes) -> bool:
        """Write a chunk of a streamed response to the transport at once, if ASGI's ``send`` would do just that."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or send != cycle.send or not cycle.chunked_encoding or cycle.response_complete or not body:
            return False
        if cycle.disconnected or self.flow.write_paused or cycle.scope["method"] == "HEAD":
            return False
        self.transport.write(b"%x\r\n%b\r\n" % (len(body), body))
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

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {CONNECTION_EXTENSION: self}  # type: ignore[dict-item] # uvicorn's type is narrower

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. Ignore trailers, because proxies do not check them as they check headers."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.scope is not self.scope:
            super().on_header(name, value)
