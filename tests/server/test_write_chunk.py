"""Chunks that are written past ASGI's ``send`` have the same bytes as through ``send``."""

import asyncio
from collections.abc import Sequence
from itertools import product

import pytest
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from agui_container.server.uvicorn_protocols import HttpProtocol
from agui_container.transports.event_stream import CONNECTION_EXTENSION
from tests.behaviour.server import listening, port_of
from tests.server.doubles import HEAD, WAIT_SECONDS, RecordingTransport, connect, connect_http, until

STREAM: Message = {"type": "http.response.start", "status": 200, "headers": []}
HEADERS: tuple[list[tuple[bytes, bytes]], ...] = (
    [],
    [(b"content-length", b"3")],
    [(b"transfer-encoding", b"chunked")],
    [(b"connection", b"close")],
)
DISCONNECT: Message = {"type": "the client leaves"}
MESSAGES: tuple[Message, ...] = (
    {"type": "http.response.body", "body": b"abc", "more_body": True},
    {"type": "http.response.body", "body": b"", "more_body": True},
    {"type": "http.response.body", "more_body": True},
    {"type": "http.response.body", "body": b"abc"},
    {"type": "http.response.body"},
    {"type": "http.response.start", "status": 200},
    DISCONNECT,
)


def connection_of(scope: Scope) -> HttpProtocol:
    """The connection, as the application finds it."""
    connection = scope["extensions"][CONNECTION_EXTENSION]
    assert isinstance(connection, HttpProtocol)
    return connection


async def test_an_application_finds_its_connection_and_writes_chunks_at_once() -> None:
    written = list[bool]()

    async def stream(scope: Scope, _receive: Receive, send: Send) -> None:
        connection = connection_of(scope)
        written.append(connection.write_chunk(send, b"too early"))
        await send(STREAM)
        written.extend(connection.write_chunk(send, body) for body in (b"one", b"", b"two"))
        await send({"type": "http.response.body", "body": b"three"})
        written.append(connection.write_chunk(send, b"too late"))

    async with listening(stream, lifespan="off") as url:
        for _ in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(url))
            writer.write(HEAD + b"\r\n" + HEAD + b"connection: close\r\n\r\n")
            async with asyncio.timeout(WAIT_SECONDS):
                response = await reader.read()
            assert response.count(b"HTTP/1.1 200 OK") == 2
            assert response.count(b"\r\n\r\n3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n") == 2
            writer.close()
            await writer.wait_closed()
    assert written == [False, True, False, True, False] * 4


class Proxy:
    """A wrapped ``send`` of middleware, with all attributes of the server's own."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def __call__(self, message: Message) -> None:
        await self._send(message)

    def __getattr__(self, name: str) -> object:
        return getattr(self._send, name)


async def test_nothing_is_written_past_middleware_or_to_a_slow_client_or_to_another_request() -> None:
    transport, sends = RecordingTransport(), list[Send]()

    async def stream(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(STREAM)
        sends.append(send)
        await asyncio.Event().wait()

    connection, other = connect_http(stream, transport), connect_http(stream, RecordingTransport())
    for each in (connection, other):
        each.data_received(HEAD + b"\r\n")
    await until(lambda: len(sends) == 2)
    own, foreign = sends
    assert not connection.write_chunk(Proxy(own), b"unseen")
    assert not connection.write_chunk(foreign, b"astray")
    connection.pause_writing()
    assert not connection.write_chunk(own, b"while the client is slow")
    connection.resume_writing()
    assert connection.write_chunk(own, b"now")
    assert transport.written.endswith(b"\r\n\r\n3\r\nnow\r\n")
    connection.connection_lost(None)
    other.connection_lost(None)
    assert not connection.write_chunk(own, b"after the end")


async def test_chunks_are_written_while_further_requests_wait() -> None:
    transport, sends = RecordingTransport(), list[Send]()

    async def stream(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(STREAM)
        sends.append(send)
        await asyncio.Event().wait()

    connection = connect_http(stream, transport)
    connection.data_received((HEAD + b"\r\n") * 3)
    await until(lambda: bool(sends))
    assert connection.write_chunk(sends[0], b"now")
    connection.connection_lost(None)


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
@pytest.mark.parametrize("headers", HEADERS)
async def test_a_response_with_written_chunks_is_the_response_that_uvicorn_sends(
    method: bytes, headers: list[tuple[bytes, bytes]]
) -> None:
    """For every sequence of three messages: the same bytes, errors and end of the connection."""
    start: Message = {**STREAM, "headers": headers}
    sequences = [each for messages in product(MESSAGES, repeat=3) for each in ((start, *messages), messages)]
    for messages in sequences:
        expected = await respond(HttpToolsProtocol, method, messages)
        assert await respond(HttpProtocol, method, messages) == expected


async def respond(
    protocol: type[HttpToolsProtocol], method: bytes, messages: Sequence[Message]
) -> tuple[bytes, list[str], bool]:
    """Send messages, or write those that can be written. Returns bytes, errors, and if the connection was closed."""
    transport, raised, done = RecordingTransport(), list[str](), asyncio.Event()

    async def application(scope: Scope, _receive: Receive, send: Send) -> None:
        for message in messages:
            if message is DISCONNECT:
                connection.connection_lost(None)
            elif not (message.get("more_body") and is_written(scope, send, message)):
                try:
                    await send(message)
                except RuntimeError as error:
                    raised.append(str(error))
        done.set()

    connection = connect(protocol, application, transport)
    connection.data_received(method + HEAD.removeprefix(b"GET") + b"\r\n")
    async with asyncio.timeout(WAIT_SECONDS):
        await done.wait()
    return transport.written, raised, transport.is_closing()


def is_written(scope: Scope, send: Send, message: Message) -> bool:
    """Write a chunk where the server is ours."""
    return "extensions" in scope and connection_of(scope).write_chunk(send, message.get("body", b""))
