"""A server of a model's wire in the test's own event loop: responses are scripted byte by byte, requests are kept.

Since it shares the loop with the model, a model that blocked the loop would never be answered.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.raw_server import raw_server

INCOMPLETE = -5
"""``cut`` of a response that lacks only the end of its body."""


@dataclass(frozen=True)
class ReceivedRequest:
    line: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.body)
        return body


@dataclass
class WireResponse:
    """One response. Every piece is a write of its own.

    ``hold`` and ``hold_head``: before the end, or before the first byte, wait until the test sets ``release`` or the
    client goes. ``cut``: send only that many bytes and hang up.
    """

    pieces: Sequence[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hold: bool = False
    hold_head: bool = False
    cut: int | None = None
    held: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    def writes(self) -> list[bytes]:
        headers = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        head = f"HTTP/1.1 {self.status} Answer\r\nTransfer-Encoding: chunked\r\n{headers}\r\n"
        return [head.encode(), *(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in self.pieces), b"0\r\n\r\n"]

    async def send(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """True if the connection can be used again."""
        if self.hold_head:
            await self._wait(reader)
        writes = self.writes() if self.cut is None else [b"".join(self.writes())[: self.cut]]
        for data in writes[:-1]:
            writer.write(data)
            await writer.drain()
        if self.hold:
            await self._wait(reader)
        writer.write(writes[-1])
        await writer.drain()
        return self.cut is None and not self.gone.is_set()

    async def _wait(self, reader: asyncio.StreamReader) -> None:
        self.held.set()
        leaving, releasing = asyncio.create_task(reader.read(1)), asyncio.create_task(self.release.wait())
        await asyncio.wait((leaving, releasing), return_when=asyncio.FIRST_COMPLETED)
        if leaving.done():
            self.gone.set()
        for task in (leaving, releasing):
            task.cancel()
        await asyncio.gather(leaving, releasing, return_exceptions=True)


@dataclass
class WireServer:
    """Gives its responses in order, one per request, whatever the connection."""

    port: int = 0
    answers: deque[WireResponse] = field(default_factory=deque)
    requests: list[Any] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def gives(self, *answers: WireResponse) -> None:
        self.answers.extend(answers)

    def read(self, request: ReceivedRequest) -> object:
        """Return what is kept of a request."""
        return request

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines if line)}
                body = await reader.readexactly(int(headers["content-length"]))
                self.requests.append(self.read(ReceivedRequest(head, headers, body)))
                if not await self.answers.popleft().send(reader, writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


Wire = TypeVar("Wire", bound=WireServer)


@asynccontextmanager
async def serving(wire: Wire) -> AsyncIterator[Wire]:
    async with raw_server(wire.serve) as wire.port:
        yield wire
