"""Requests over HTTP/1.1 that offer another protocol, such as HTTP/2: the offer is ignored and the request is answered.

A handshake of WebSocket may repeat its headers, as `websockets` does with those of AWS's SDK; the first of each counts.

Rule: a server may ignore ``Upgrade`` (RFC 9110, section 7.8). ``curl --http2`` and ``java.net.http.HttpClient`` offer
h2c with the first request of a connection, which may have a body. httptools ends such a request after its head, so the
head is parsed once more without the offer, and the body behind it.
"""

import sys

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

OFFER_HEADERS = frozenset((b"upgrade", b"http2-settings"))
"""Headers of an offer. ``Connection`` names them, too."""

HANDSHAKE_HEADERS = frozenset((b"connection", b"host", b"sec-websocket-key", b"sec-websocket-version", b"upgrade"))


class OfferIgnoringProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 protocol, which answers requests with an offer as if they had none."""

    _offer_end: int | None = None
    """End of a head with an offer in the data that is being parsed."""

    def data_received(self, data: bytes) -> None:
        """Parse the data, and each head with an offer twice."""
        super().data_received(data)
        while self._offer_end is not None:
            data, self._offer_end = self._head_without_offer() + data[self._offer_end :], None
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            super().data_received(data)

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


def _without_offer(connection: bytes) -> bytes:
    options = [option.strip() for option in connection.split(b",")]
    return b", ".join(option for option in options if option.lower() not in OFFER_HEADERS)
