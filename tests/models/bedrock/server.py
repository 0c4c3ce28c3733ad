"""A server that speaks ConverseStream on a real socket, in the test's own event loop.

Since it shares the loop with the model, a model that blocked the loop would never be answered.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tests.models.bedrock.frames import frame
from tests.models.bedrock.rules import broken_rules
from tests.raw_server import raw_server

Event = Mapping[str, Any]


@dataclass
class BedrockResponse:
    """Response of the server to one request.

    ``hold`` and ``hold_head``: before the end, or before the first byte, wait until the test sets ``release`` or the
    client goes. ``find_cut``: send only that many bytes and hang up. Frames go out in chunks of their own.
    """

    events: Sequence[Event] = ()
    status: int = 200
    error: str = ""
    message: str = ""
    retry_after: str = ""
    hold: bool = False
    hold_head: bool = False
    cut: int | None = None
    held: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def head(self) -> bytes:
        if self.error or self.status != 200:
            body = self._refusal
            kind = f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\nx-amzn-ErrorType: {self.error}:x"
            kind += f"\r\nRetry-After: {self.retry_after}" if self.retry_after else ""
        else:
            kind = "Transfer-Encoding: chunked\r\nContent-Type: application/vnd.amazon.eventstream"
        return f"HTTP/1.1 {self.status} Answer\r\n{kind}\r\n\r\n".encode()

    @property
    def body(self) -> bytes:
        if self.error or self.status != 200:
            return self._refusal
        frames = map(frame, self.events)
        return b"".join(b"%x\r\n%s\r\n" % (len(data), data) for data in frames)

    @property
    def tail(self) -> bytes:
        return b"" if self.error or self.status != 200 else b"0\r\n\r\n"

    @property
    def _refusal(self) -> bytes:
        return json.dumps({"message": self.message}).encode()


@dataclass
class BedrockServer:
    """The running server. ``requests`` are the bodies as parsed JSON, with the model id under ``modelId``."""

    url: str
    answers: deque[BedrockResponse] = field(default_factory=deque)
    requests: list[dict[str, Any]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    connections: int = 0

    def will(self, *answers: BedrockResponse | Sequence[Event]) -> list[BedrockResponse]:
        made = [answer if isinstance(answer, BedrockResponse) else BedrockResponse(answer) for answer in answers]
        self.answers.extend(made)
        return made

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while request := await _request(reader):
                self.requests.append(request)
                self.broken.extend(broken_rules(request))
                if not await _send(self.answers.popleft(), reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _request(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    line, *headers = head.split("\r\n")
    method, path, _ = line.split()
    fields = dict(header.lower().split(": ", 1) for header in headers if header)
    assert method == "POST"
    assert fields["authorization"].startswith("aws4-hmac-sha256")
    body: dict[str, Any] = json.loads(await reader.readexactly(int(fields["content-length"])))
    _, model, model_id, operation = path.split("/")
    assert (model, operation) == ("model", "converse-stream")
    return {**body, "modelId": unquote(model_id)}


async def _send(answer: BedrockResponse, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """True if the connection can be used again."""
    if answer.hold_head:
        await _hold(answer, reader)
    if answer.cut is not None:
        writer.write((answer.head + answer.body + answer.tail)[: answer.cut])
        await writer.drain()
        return False
    writer.write(answer.head + answer.body)
    if answer.hold:
        await writer.drain()
        await _hold(answer, reader)
    writer.write(answer.tail)
    await writer.drain()
    return not answer.gone.is_set()


async def _hold(answer: BedrockResponse, reader: asyncio.StreamReader) -> None:
    answer.held.set()
    leaving, releasing = asyncio.create_task(reader.read(1)), asyncio.create_task(answer.release.wait())
    await asyncio.wait((leaving, releasing), return_when=asyncio.FIRST_COMPLETED)
    if leaving.done():
        answer.gone.set()
    for task in (leaving, releasing):
        task.cancel()
    await asyncio.gather(leaving, releasing, return_exceptions=True)


@asynccontextmanager
async def wire_server() -> AsyncIterator[BedrockServer]:
    wire = BedrockServer("")
    async with raw_server(wire.serve) as port:
        wire.url = f"http://127.0.0.1:{port}"
        yield wire
