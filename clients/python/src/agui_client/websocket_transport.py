"""Runs and commands over WebSockets, one JSON object per text frame.

Rules:

- A socket serves one request at a time, because most events do not name their run. A command during a run takes a
  socket of its own.
- A socket is used again only if its server numbers events or answers commands: another server may end the socket with
  its run, and a request on a socket that just closes could not be repeated.
- Frames may hold Server-Sent Events, too, because AWS's ``AGUIApp`` sends them.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

from ag_ui.core import RunAgentInput
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.protocol import State

from agui_client.agentcore import is_presigned
from agui_client.caller import Address, Caller
from agui_client.errors import ConnectionDropped, RunRefusedError
from agui_client.events import TERMINAL, parse_frame
from agui_client.own_thread import in_thread
from agui_client.sse import EventStreamParser
from agui_client.transport import Attach, Frame, Received, refusal, refused_response

CONNECT_SECONDS = 30.0
PING_SECONDS = 15.0
PONG_SECONDS = 10.0
CLOSE_SECONDS = 1.0

IDLE_SECONDS = 60.0
"""Time that an unused socket stays open."""

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

    merges_deltas = True

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._idle: ClientConnection | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._is_reusable = False
        self._unanswered = 0

    async def stream(self, request: RunAgentInput | Attach) -> AsyncGenerator[Received, None]:
        """Yield the events of a run."""
        sent = (
            json.dumps({"command": request.command, "id": 1})
            if isinstance(request, Attach)
            else request.model_dump_json(by_alias=True)
        )
        async with self._socket() as socket:
            await _send(socket, sent)
            async for frame in _frames(socket):
                if frame.get("control") == "error":
                    raise refusal(frame)
                if not isinstance(frame.get("type"), str):
                    continue
                received = _numbered(frame)
                self._is_reusable = self._is_reusable or received.seq is not None
                if frame["type"] in TERMINAL:
                    self._keep(socket)
                yield received
                if frame["type"] in TERMINAL:
                    return

    async def command(self, command: Frame) -> Frame:
        """Send a command, and return its result."""
        try:
            return await self._ask(command)
        except ConnectionDropped as error:
            self._unanswered += error.was_sent and command["type"] == "capabilities"
            if self._unanswered < UNANSWERED:
                raise
            raise _unknown(command) from error

    async def _ask(self, command: Frame) -> Frame:
        async with self._socket() as socket:
            await _send(socket, json.dumps({"command": command, "id": 1}))
            async for frame in _frames(socket):
                if frame.get("control") == "error":
                    raise refusal(frame)
                if frame.get("control") == "result":
                    self._is_reusable = True
                    self._keep(socket)
                    return frame
                if frame.get("type") in TERMINAL:
                    break
        raise _unknown(command)

    async def aclose(self) -> None:
        """Close the unused socket."""
        socket = self._take_idle()
        if socket is not None:
            await socket.close()

    @asynccontextmanager
    async def _socket(self) -> AsyncIterator[ClientConnection]:
        """Give the idle socket, or a new one. It is closed afterwards, unless it is kept."""
        socket = self._take_idle() or await self._connect()
        try:
            yield socket
        finally:
            if socket is not self._idle:
                socket.transport.abort()  # the closing handshake may take longer than the caller has time

    def _take_idle(self) -> ClientConnection | None:
        socket, self._idle = self._idle, None
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        return socket if socket is not None and socket.state is State.OPEN else None

    def _keep(self, socket: ClientConnection) -> None:
        if self._idle is not None or not self._is_reusable:
            return
        self._idle = socket
        self._idle_timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, socket.transport.abort)

    async def _connect(self) -> ClientConnection:
        address = await self._caller.address()
        url = _with_cursor(address.url)
        try:
            return await connect(
                url,
                additional_headers=await _headers(address, url),
                open_timeout=CONNECT_SECONDS,
                ping_interval=PING_SECONDS,
                ping_timeout=PONG_SECONDS,
                close_timeout=CLOSE_SECONDS,
                max_size=MAX_FRAME,
                compression=None,
            )
        except InvalidStatus as error:
            raise refused_response(error.response.status_code, bytes(error.response.body or b"")) from error
        except (OSError, TimeoutError, WebSocketException) as error:
            raise ConnectionDropped(f"The socket did not open: {error}", was_sent=False) from error


def _unknown(command: Frame) -> RunRefusedError:
    return RunRefusedError("UNKNOWN_COMMAND", f"The server does not know the command {command['type']}.")


def _with_cursor(url: str) -> str:
    """Ask for numbers of events. A presigned URL stays as it was signed."""
    if is_presigned(url):
        return url
    return f"{url}{'&' if urlsplit(url).query else '?'}cursor=1"


async def _headers(address: Address, url: str) -> dict[str, str]:
    """Headers of the handshake. They are signed in a thread because credentials may take time."""
    if address.sigv4 is None:
        return address.headers
    signed = await in_thread(partial(address.sigv4.headers, "GET", url, address.headers))
    return {**address.headers, **signed}


async def _send(socket: ClientConnection, text: str) -> None:
    try:
        await socket.send(text)
    except ConnectionClosed as error:
        raise _closed(error) from error


async def _frames(socket: ClientConnection) -> AsyncGenerator[Frame, None]:
    """Frames until the socket closes, which raises ``ConnectionDropped``, or ``RunRefusedError`` for a refusal."""
    parser = EventStreamParser()
    while True:
        try:
            data = await socket.recv(decode=False)
        except ConnectionClosed as error:
            raise _closed(error) from error
        if data.lstrip().startswith(b"{"):
            yield parse_frame(data.decode("utf-8", "replace"))
        else:
            for event in parser.feed(data):
                yield parse_frame(event.data)


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
