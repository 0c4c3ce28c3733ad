"""A server that speaks the chat completions wire: answers are scripted byte by byte, requests are kept."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum

from tests.raw_server import raw_server

SSE = "text/event-stream; charset=utf-8"


class End(Enum):
    CLEAN = 0
    ABORTED = 1  # the connection is closed before the body is complete
    SILENT = 2  # nothing more comes, and the connection stays


@dataclass(frozen=True)
class OpenAIResponse:
    """One response. Every piece is a write of its own."""

    pieces: Sequence[bytes] = ()
    status: int = 200
    type: str = SSE
    headers: Mapping[str, str] = field(default_factory=dict)
    end: End = End.CLEAN
    drop: bool = False  # close the connection without a word


@dataclass(frozen=True)
class ReceivedRequest:
    line: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> dict[str, object]:
        body: dict[str, object] = json.loads(self.body)
        return body


@dataclass
class OpenAIServer:
    """Gives its answers in order, one per request, whatever the connection."""

    port: int = 0
    answers: list[OpenAIResponse] = field(default_factory=list)
    requests: list[ReceivedRequest] = field(default_factory=list)
    connections: int = 0
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def gives(self, *answers: OpenAIResponse) -> None:
        self.answers.extend(answers)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = self.connections
        try:
            while True:
                self.requests.append(await _request(reader, connection))
                self.asked.set()
                answer = self.answers.pop(0)
                if answer.drop or not await _write(writer, answer):
                    return
                if answer.end is End.SILENT:
                    await reader.read()  # until the client goes
                    self.closed.set()
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed.set()
        finally:
            writer.close()


async def _request(reader: asyncio.StreamReader, connection: int) -> ReceivedRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    pairs = (line.split(": ", 1) for line in head[1:] if line)
    headers = {name.lower(): value for name, value in pairs}
    return ReceivedRequest(head[0], headers, await reader.readexactly(int(headers["content-length"])), connection)


async def _write(writer: asyncio.StreamWriter, answer: OpenAIResponse) -> bool:
    """Write a response; whether the connection can go on."""
    headers = {"Content-Type": answer.type, "Transfer-Encoding": "chunked", **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} Said", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    writer.write("\r\n".join(lines).encode())
    for piece in answer.pieces:
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await writer.drain()
    if answer.end is End.CLEAN:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return answer.end is not End.ABORTED


@asynccontextmanager
async def wire_server() -> AsyncIterator[OpenAIServer]:
    wire = OpenAIServer()
    async with raw_server(wire.serve) as wire.port:
        yield wire


def sse(*events: object) -> list[bytes]:
    texts = (event if isinstance(event, str) else json.dumps(event) for event in events)
    return [f"data: {text}\n\n".encode() for text in texts]


def says(text: str, finish: str | None = None, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}], **more}


def speaks(*texts: str) -> OpenAIResponse:
    return OpenAIResponse(sse(*(says(text) for text in texts), says("", "stop"), "[DONE]"))


def refuses(status: int, body: object = None, **headers: str) -> OpenAIResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return OpenAIResponse(
        [json.dumps(body or {"error": {"message": "no"}}).encode()], status, "application/json", named
    )
