"""HTTP requests on an HTTP/2 connection: what is not a gRPC call is answered by the ASGI application.

Rule: the application sees what it sees over HTTP/1.1. Its task belongs to the HTTP server, which waits for it when it
shuts down. A client that resets its request or closes the connection is ``http.disconnect``, and no task is cancelled.

Source: RFC 9113, section 8; ASGI 3.0.
"""

import asyncio
import logging
from collections.abc import Callable
from urllib.parse import unquote

from grpclib.protocol import Stream
from h2.errors import ErrorCodes
from h2.exceptions import StreamClosedError
from starlette.types import ASGIApp, Message, Scope

from agui_container.protocols.grpc.call import PIECE_BYTES
from agui_container.protocols.grpc.handover import HttpConnection
from agui_container.web.event_stream import STALLED_SECONDS

CONNECTION_HEADERS = frozenset(("connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"))
"""Headers of HTTP/1.1 connections, which HTTP/2 forbids."""

Headers = list[tuple[str, str]]

logger = logging.getLogger(__name__)


def begin_request(
    connection: HttpConnection, stream: Stream, headers: Headers, release: Callable[[], None]
) -> "HttpRequest":
    """Begin to answer a request. ``release`` is called at its end."""
    request = HttpRequest(stream, scope_of(connection, headers))
    task = asyncio.create_task(request.run(connection.app), name="HTTP/2 request")
    connection.tasks.add(task)
    task.add_done_callback(connection.tasks.discard)
    task.add_done_callback(lambda _: release())
    return request


def scope_of(connection: HttpConnection, headers: Headers) -> Scope:
    pseudo = {name: value for name, value in headers if name.startswith(":")}
    fields = [(name, value) for name, value in headers if not name.startswith(":")]
    if ":authority" in pseudo:
        fields = [("host", pseudo[":authority"]), *(field for field in fields if field[0] != "host")]
    cookies = [value for name, value in fields if name == "cookie"]
    if len(cookies) > 1:  # HTTP/2 may split them
        fields = [*(field for field in fields if field[0] != "cookie"), ("cookie", "; ".join(cookies))]
    path, _, query = pseudo.get(":path", "").partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "2",
        "method": pseudo[":method"],
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "root_path": "",
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields],
        "client": connection.transport.get_extra_info("peername"),
        "server": connection.transport.get_extra_info("sockname"),
        "state": dict(connection.app_state),
    }


class HttpRequest:
    def __init__(self, stream: Stream, scope: Scope) -> None:
        self._stream = stream
        self._scope = scope
        self._is_disconnected = self._is_complete = False
        self._is_reading = True
        self._sending: asyncio.Timeout | None = None

    async def run(self, app: ASGIApp) -> None:
        """Call the application. A response that is not complete then is reset."""
        try:
            await app(self._scope, self._receive, self._send)
        except Exception:
            logger.exception("request failed")
        finally:
            if self._stream.closable:  # also if the client is still sending a body that nobody reads
                self._stream.reset_nowait(ErrorCodes.NO_ERROR if self._is_complete else ErrorCodes.INTERNAL_ERROR)

    def disconnect(self) -> None:
        """Tell the application that nobody reads. A send that waits for the client ends."""
        self._is_disconnected, self._is_reading = True, False
        self._stream.buffer.eof()
        if self._sending is not None and not self._sending.expired():
            self._sending.reschedule(asyncio.get_running_loop().time())

    async def _receive(self) -> Message:
        while not self._is_disconnected:
            piece, _, size = await self._stream.buffer._unacked.get()
            self._stream.buffer._ack_callback(size)  # grpclib itself reads messages of a known length only
            if self._is_reading:
                self._is_reading = size > 0
                return {"type": "http.request", "body": piece, "more_body": self._is_reading}
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if self._is_disconnected:
            return
        try:
            async with asyncio.timeout(STALLED_SECONDS) as self._sending:
                await self._write(message, self._sending)
        except (TimeoutError, StreamClosedError):  # the client has left, or does not read
            self.disconnect()
        finally:
            self._sending = None
        if self._is_complete:
            self.disconnect()

    async def _write(self, message: Message, limit: asyncio.Timeout) -> None:
        if message["type"] == "http.response.start":
            given = message.get("headers", ())
            fields = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in given]
            headers = [field for field in fields if field[0] not in CONNECTION_HEADERS]
            await self._stream.send_headers([(":status", str(message["status"])), *headers])
            return
        body = b"" if self._scope["method"] == "HEAD" else message.get("body", b"")
        is_last = not message.get("more_body", False)
        for start in range(0, len(body), PIECE_BYTES):
            await self._stream.send_data(body[start : start + PIECE_BYTES])
            if self._is_disconnected:
                return
            limit.reschedule(asyncio.get_running_loop().time() + STALLED_SECONDS)
        if is_last:
            await self._stream.send_data(b"", end_stream=True)
            self._is_complete = True
