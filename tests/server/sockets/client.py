"""A client made of raw sockets, so that tests decide which bytes are sent, read, or left in the kernel.

Every wait is bounded: by ``PATIENCE`` in each step, and by pytest's timeout.
"""

import asyncio
import contextlib
import itertools
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from tests.engine.doubles import Json
from tests.sse import events_of, take_frames

PATIENCE = 120.0
POLL = 0.02

_numbers = itertools.count(1)
_opened: list["HttpExchange"] = []


def run_input(text: str, *, thread: str | None = None, **fields: object) -> Json:
    number = next(_numbers)
    ids = {"threadId": thread or f"t{number}", "runId": f"r{number}", "protocolVersion": "1.0"}
    return {**ids, "messages": [{"id": f"m{number}", "role": "user", "content": text}], **fields}


def request(method: str, path: str, body: bytes = b"", headers: Iterable[str] = ()) -> bytes:
    """Return an HTTP/1.1 request. ``headers`` replace those about the body's length."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *(headers or (f"Content-Length: {len(body)}",))]
    return "\r\n".join([*lines, "", ""]).encode() + body


def post(document: Json | bytes) -> bytes:
    return request("POST", "/invocations", document if isinstance(document, bytes) else json.dumps(document).encode())


@dataclass(frozen=True, slots=True)
class HttpResponse:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 - whatever the server said
        return json.loads(self.body)

    @property
    def events(self) -> list[Json]:
        return events_of(self.body)


@dataclass(slots=True)
class HttpExchange:
    """One request on a connection of its own, and its response as far as the test reads it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    events: list[Json] = field(default_factory=list)
    _rest: bytes = b""

    @classmethod
    async def open(cls, port: int, sent: bytes, *, window: int | None = None) -> Self:
        """Connect and send. The kernel takes ``window`` bytes while the test does not read."""
        sock = socket.socket()
        if window is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        sock.setblocking(False)  # noqa: FBT003 - the standard library's own
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=sock, limit=window or 65536)
        writer.write(sent)
        exchange = cls(reader, writer)
        _opened.append(exchange)
        return exchange

    async def _line(self) -> bytes:
        line = await self.reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionResetError("cut off")
        return line

    async def head(self) -> Self:
        """Read the status and the headers. Raises ``OSError`` where it is cut off."""
        async with asyncio.timeout(PATIENCE):
            self.status = int((await self._line()).split(maxsplit=2)[1])
            while line := (await self._line()).decode().strip():
                name, _, value = line.partition(":")
                self.headers[name.lower()] = value.strip()
        return self

    async def body(self) -> AsyncGenerator[bytes, None]:
        """The pieces of the body as the server wrote them. Raises ``OSError`` or ``EOFError`` where it is cut off."""
        if not self.status:
            await self.head()
        if self.headers.get("transfer-encoding") != "chunked":
            async with asyncio.timeout(PATIENCE):
                piece = await self.reader.readexactly(int(self.headers.get("content-length", 0)))
            yield piece
            return
        while True:
            async with asyncio.timeout(PATIENCE):
                size = int(await self._line(), 16)
                piece = await self.reader.readexactly(size + 2)
            if size == 0:
                return
            yield piece[:-2]

    async def until(self, wanted: Callable[[Json], bool]) -> Self:
        """Read SSE events into ``events`` up to the first that is wanted, or all."""
        async with contextlib.aclosing(self.body()) as pieces:
            async for piece in pieces:
                frames, self._rest = take_frames(self._rest + piece)
                new = [frame.event for frame in frames]
                self.events += new
                if any(map(wanted, new)):
                    break
        return self

    async def rest(self) -> Self:
        return await self.until(lambda _: False)

    @property
    def text(self) -> str:
        return text_of(self.events)

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(self.writer.wait_closed(), PATIENCE)


def text_of(events: Iterable[Json]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")


def is_text(event: Json) -> bool:
    """Return True for an event with text, which means that the run is under way."""
    return bool(event.get("type") == "TEXT_MESSAGE_CONTENT")


def is_last(event: Json) -> bool:
    return event.get("type") in ("RUN_FINISHED", "RUN_ERROR")


async def close_all() -> None:
    while _opened:
        await _opened.pop().close()


async def ask(port: int, sent: bytes) -> HttpResponse:
    exchange = await HttpExchange.open(port, sent)
    try:
        body = b"".join([piece async for piece in exchange.body()])
    finally:
        await exchange.close()
    return HttpResponse(exchange.status, exchange.headers, body)


async def get(port: int, path: str) -> Any:  # noqa: ANN401 - whatever the server said
    return (await ask(port, request("GET", path))).json()


async def say(port: int, text: str) -> str:
    return text_of((await ask(port, post(run_input(text)))).events)


async def wait_until(look: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await look():  # noqa: ASYNC110 - what is waited for is in another process
            await asyncio.sleep(POLL)
