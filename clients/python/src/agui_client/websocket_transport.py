"""Runs and commands over WebSockets, one JSON object per text frame.

Rules:

- Each request has a socket of its own, because most events do not name their run.
- Frames may hold Server-Sent Events, too, because AWS's ``AGUIApp`` sends them.
"""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from agui_client.agentcore import is_presigned
from agui_client.caller import Caller
from agui_client.errors import ConnectionDropped, RunRefusedError
from agui_client.events import TERMINAL, parse_frame
from agui_client.transport import Frame, Received, events_in, refusal, refused_response, unknown_command

CONNECT_SECONDS = 30.0
PING_SECONDS = 15.0
PONG_SECONDS = 10.0

MAX_FRAME = 32_000_000
"""Bytes of a frame that the client takes."""

TOO_LARGE = 1009
UNANSWERED = 3
"""Sockets that end with the question for capabilities, after which the server does not know it. AWS's ``AGUIApp`` means
to close a socket with a reason, and its reason is longer than a socket allows.
"""

REFUSED = frozenset({1003, 1007})
"""Close codes of servers that do not understand a frame."""


class WebSocketTransport:
    """Implements ``Transport`` over WebSocket."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._unanswered = 0

    async def stream(self, request: str) -> AsyncGenerator[Received, None]:
        async with aclosing(self._frames(request)) as frames:
            async for frame in frames:
                if isinstance(frame.get("type"), str):
                    yield _numbered(frame)
                    if frame["type"] in TERMINAL:
                        return

    async def command(self, command: Frame) -> Frame:
        try:
            async with aclosing(self._frames(json.dumps({"command": command, "id": 1}))) as frames:
                async for frame in frames:
                    if frame.get("control") == "result":
                        return frame
                    if frame.get("type") in TERMINAL:
                        break
        except ConnectionDropped as error:
            self._unanswered += error.was_sent and command["type"] == "capabilities"
            if self._unanswered < UNANSWERED:
                raise
        raise unknown_command(command)

    async def aclose(self) -> None:
        """Close nothing: a socket ends with its request."""

    async def _frames(self, request: str) -> AsyncGenerator[Frame, None]:
        """Send a request, and yield frames until the socket closes. That raises an error."""
        socket = await self._connect()
        try:
            await socket.send(request)
            while True:
                for frame in _frames_in(await socket.recv(decode=False)):
                    if frame.get("control") == "error":
                        raise refusal(frame)
                    yield frame
        except ConnectionClosed as error:
            raise _closed(error) from error
        finally:
            socket.transport.abort()  # the closing handshake may take longer than the caller has time

    async def _connect(self) -> ClientConnection:
        address = await self._caller.address()
        url = address.url
        if not is_presigned(url):  # then it stays as it was signed
            url += f"{'&' if urlsplit(url).query else '?'}cursor=1"
        try:
            return await connect(
                url,
                additional_headers=await address.handshake_headers(url),
                open_timeout=CONNECT_SECONDS,
                ping_interval=PING_SECONDS,
                ping_timeout=PONG_SECONDS,
                max_size=MAX_FRAME,
                compression=None,
            )
        except InvalidStatus as error:
            raise refused_response(error.response.status_code, bytes(error.response.body or b"")) from error
        except (OSError, TimeoutError, WebSocketException) as error:
            raise ConnectionDropped(f"The socket did not open: {error}", was_sent=False) from error


def _frames_in(data: bytes) -> Iterator[Frame]:
    if data.lstrip().startswith(b"{"):
        yield parse_frame(data.decode("utf-8", "replace"))
    else:
        yield from (parse_frame(event.data) for event in events_in(data))


def _numbered(frame: Frame) -> Received:
    """Split a frame into the event as HTTP has it, and the number that ``?cursor=1`` adds."""
    metadata = frame.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(seq := metadata.get("seq"), int):
        return Received(frame, None)
    others = {name: value for name, value in metadata.items() if name != "seq"}
    event = {name: value for name, value in frame.items() if name != "metadata"}
    return Received({**event, "metadata": others} if others else event, seq)


def _closed(error: ConnectionClosed) -> ConnectionDropped | RunRefusedError:
    code = error.rcvd.code if error.rcvd else None
    reason = error.rcvd.reason if error.rcvd else ""
    if code == TOO_LARGE:
        return RunRefusedError("PAYLOAD_TOO_LARGE", "A frame is larger than the server or its gateway allows.")
    if code in REFUSED:
        return RunRefusedError(f"CLOSED_{code}", f"The server closed the socket: {reason or code}")
    return ConnectionDropped(f"The socket was closed ({error}).")
