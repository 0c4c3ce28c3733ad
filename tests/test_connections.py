"""What one client can make a connection cost, before a request is anybody's."""

import asyncio
import base64
import gc
import json
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import product
from typing import TypeVar

import pytest
import uvicorn
from ag_ui.core import RunAgentInput
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState
from websockets.frames import Frame, Opcode

from app.connections import MAX_FRAMES, MAX_HEAD, Answer, Frames, Requests
from app.edge.stream import Connection, connection_of
from app.main import create_app
from app.ports import Item
from app.settings import Settings
from tests.engine.doubles import ask, make_service

P = TypeVar("P", bound=HttpToolsProtocol)

HEAD = b"GET / HTTP/1.1\r\nhost: here\r\n"
HELLO = (
    b"GET /ws HTTP/1.1\r\nhost: here\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n"
    b"sec-websocket-key: " + base64.b64encode(bytes(16)) + b"\r\n"
)
PATIENCE = 5.0
AROUND = 4
"""What opens and ends a run and a message."""


class Wire(asyncio.Transport):
    """The server's end of a connection, and what was done to it."""

    def __init__(self) -> None:
        super().__init__({"peername": ("here", 1), "sockname": ("here", 2)})
        self.written = b""
        self.reads = True
        self.closed = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def close(self) -> None:
        self.closed.set()

    def is_closing(self) -> bool:
        return self.closed.is_set()

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol


class Seen:
    """An application that keeps what it is asked, and answers when it may."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.may_answer = asyncio.Semaphore(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            while (await receive())["type"] != "websocket.disconnect":
                pass
            return
        await self.may_answer.acquire()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})


def requests(app: ASGIApp, wire: Wire, keep_alive: int = 75) -> Requests:
    return connected(Requests, app, wire, keep_alive)


def connected(protocol: type[P], app: ASGIApp, wire: Wire, keep_alive: int = 75) -> P:
    config = uvicorn.Config(app, log_config=None, timeout_keep_alive=keep_alive)
    config.load()
    connection = protocol(config, ServerState(), {})
    connection.connection_made(wire)
    return connection


async def frames(wire: Wire) -> Frames:
    """One that is open."""
    config = uvicorn.Config(Seen(), log_config=None, ws_ping_interval=None)
    config.load()
    connection = Frames(config, ServerState(), {})
    connection.connection_made(wire)
    connection.data_received(HELLO + b"\r\n")
    await until(lambda: connection.handshake_complete)
    await until(lambda: wire.reads)
    return connection


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0)


def sent(opcode: Opcode, data: bytes = b"", *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


# --- HTTP ---


@pytest.mark.parametrize("piece", [b"a: b\r\n", b"a"])
async def test_a_head_that_does_not_end_is_refused(piece: bytes) -> None:
    wire = Wire()
    connection = requests(Seen(), wire)
    connection.data_received(HEAD)
    for _ in range(3):
        connection.data_received(piece * (MAX_HEAD // len(piece) // 2))
    assert wire.written.startswith(b"HTTP/1.1 400 ")
    assert wire.is_closing()


async def test_a_large_body_is_not_a_large_head() -> None:
    wire, app = Wire(), Seen()
    connection = requests(app, wire)
    connection.data_received(HEAD + b"content-length: %d\r\n\r\n" % (4 * MAX_HEAD))
    for _ in range(4):
        connection.data_received(b"x" * MAX_HEAD)
    assert wire.written == b""
    assert not wire.is_closing()


async def test_what_stands_behind_a_body_is_no_header() -> None:
    """Whatever stands before the server has looked at the head only, such as for whose session a request is."""
    wire, app = Wire(), Seen()
    connection = requests(app, wire)
    connection.data_received(HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nowner: another\r\n\r\n")
    await until(lambda: bool(app.scopes))
    assert app.scopes[0]["headers"] == [(b"host", b"here"), (b"transfer-encoding", b"chunked")]


async def test_a_connection_holds_no_queue_until_something_waits() -> None:
    wire, app = Wire(), Seen()
    connection = requests(app, wire)
    connection.data_received(HEAD + b"\r\n")
    await until(lambda: len(app.scopes) == 1)
    assert queues(connection) == []
    assert not hasattr(connection.flow, "_is_writable_event")
    connection.data_received((HEAD + b"\r\n") * 2)
    app.may_answer.release()
    await until(lambda: len(app.scopes) == 2)
    assert queues(connection) == [connection.pipeline]
    assert len(connection.pipeline) == 1


def queues(connection: Requests) -> list[object]:
    """Those of the connection, and of what answers its request."""
    flow, cycle = connection.flow, connection.cycle
    parts = (connection, flow, cycle, cycle.message_event)
    return [kept for part in parts for kept in vars(part).values() if isinstance(kept, deque)]


async def test_who_sends_waits_for_a_client_that_takes_nothing_again_and_again() -> None:
    wire, sent = Wire(), list[int]()

    async def stream(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(4):
            await send({"type": "http.response.body", "body": b"%d" % number, "more_body": True})
            sent.append(number)

    connection = requests(stream, wire)
    connection.pause_writing()
    connection.data_received(HEAD + b"\r\n")
    for _ in range(5):
        await asyncio.sleep(0)
    assert sent == []
    connection.resume_writing()
    await until(lambda: len(sent) == 4)
    connection.pause_writing()
    connection.pause_writing()
    connection.connection_lost(None)
    assert not connection.flow.write_paused


HEADERS: tuple[list[tuple[bytes, bytes]], ...] = (
    [],
    [(b"content-length", b"3")],
    [(b"transfer-encoding", b"chunked")],
    [(b"connection", b"close")],
)
LEFT: Message = {"type": "the client leaves"}
PIECES: tuple[Message, ...] = (
    {"type": "http.response.body", "body": b"abc", "more_body": True},
    {"type": "http.response.body", "body": b"", "more_body": True},
    {"type": "http.response.body", "more_body": True},
    {"type": "http.response.body", "body": b"abc"},
    {"type": "http.response.body"},
    {"type": "http.response.start", "status": 200},
    LEFT,
)


@pytest.mark.parametrize("protocol", [Requests, HttpToolsProtocol])
@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
@pytest.mark.parametrize("headers", HEADERS)
@pytest.mark.parametrize("piecewise", [False, True], ids=["sent", "pieces written"])
async def test_an_answer_is_sent_as_uvicorn_sends_it(
    monkeypatch: pytest.MonkeyPatch,
    protocol: type[HttpToolsProtocol],
    method: bytes,
    headers: list[tuple[bytes, bytes]],
    *,
    piecewise: bool,
) -> None:
    """Also where uvicorn serves somebody else in the same process."""
    start: Message = {"type": "http.response.start", "status": 200, "headers": headers}
    asked = [some for pieces in product(PIECES, repeat=3) for some in ((start, *pieces), pieces)]
    ours = [await answered(protocol, method, messages, piecewise=piecewise) for messages in asked]
    monkeypatch.setattr(httptools_impl, "RequestResponseCycle", Answer.__base__)
    assert ours == [await answered(protocol, method, messages) for messages in asked]


async def answered(
    protocol: type[HttpToolsProtocol], method: bytes, messages: Sequence[Message], *, piecewise: bool = False
) -> tuple[bytes, list[str], bool]:
    """What is written, what is raised, and whether the connection is closed.

    ``piecewise`` offers the pieces of a body to the answer, and sends those that it does not take.
    """
    wire, raised, done = Wire(), list[str](), asyncio.Event()

    async def application(_scope: Scope, _receive: Receive, send: Send) -> None:
        for message in messages:
            if message is LEFT:
                connection.connection_lost(None)
                continue
            if piecewise and message.get("more_body") and write_piece(send, message.get("body", b"")):
                continue
            try:
                await send(message)
            except RuntimeError as error:
                raised.append(str(error))
        done.set()

    connection = connected(protocol, application, wire)
    connection.data_received(method + HEAD.removeprefix(b"GET") + b"\r\n")
    async with asyncio.timeout(PATIENCE):
        await done.wait()
    return wire.written, raised, wire.is_closing()


def write_piece(send: Send, body: bytes) -> bool:
    """As a stream does it."""
    return connection_of(send).write_piece(body)


class Seeing:
    """Middleware's way to send that says of itself what the server's says."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def __call__(self, message: Message) -> None:
        await self._send(message)

    def __getattr__(self, name: str) -> object:
        return getattr(self._send, name)


async def test_a_piece_is_written_past_nobody_and_not_to_who_takes_nothing() -> None:
    wire, found = Wire(), list[Connection]()

    async def stream(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        found.extend([connection_of(send), connection_of(Seeing(send))])
        await asyncio.Event().wait()

    connection = requests(stream, wire)
    connection.data_received(HEAD + b"\r\n")
    await until(lambda: bool(found))
    own, seen = found
    connection.pause_writing()
    assert not own.write_piece(b"while it is slow")
    connection.resume_writing()
    assert own.write_piece(b"now")
    assert not seen.write_piece(b"unseen")
    assert wire.written.endswith(b"5\r\nfirst\r\n3\r\nnow\r\n")
    connection.connection_lost(None)


async def test_the_tokens_of_a_stream_are_written_to_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for _number in range(20):
            yield "word "
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    messages, send = list[Message](), Answer.send

    async def noted(answer: Answer, message: Message) -> None:
        messages.append(message)
        await send(answer, message)  # type: ignore[arg-type] # a message of uvicorn's

    monkeypatch.setattr(Answer, "send", noted)
    service, wire, body = make_service(agent), Wire(), json.dumps(ask()).encode()
    await service.open()
    connection = requests(create_app(Settings(), service), wire)
    head = HEAD.replace(b"GET /", b"POST /invocations")
    connection.data_received(head + b"content-length: %d\r\n\r\n" % len(body) + body)
    await until(lambda: wire.written.endswith(b"\r\n0\r\n\r\n"))
    assert wire.written.count(b"\r\nid: ") + wire.written.count(b"\n\nid: ") == 20 + AROUND
    assert len(messages) <= AROUND


async def test_while_requests_wait_for_their_answers_no_others_are_read() -> None:
    wire, app = Wire(), Seen()
    connection = requests(app, wire)
    connection.data_received((HEAD + b"\r\n") * 3)
    await until(lambda: len(app.scopes) == 1)
    assert not wire.reads
    app.may_answer.release()
    await until(lambda: len(app.scopes) == 2)
    assert not wire.reads
    app.may_answer.release()
    await until(lambda: len(app.scopes) == 3)
    assert wire.reads


@pytest.mark.parametrize("said", [b"", b"GET / HT", b"\r\n"])
async def test_a_connection_without_a_whole_head_is_closed_after_a_while(said: bytes) -> None:
    wire = Wire()
    connection = requests(Seen(), wire, keep_alive=0)
    if said:
        connection.data_received(said)
    async with asyncio.timeout(PATIENCE):
        await wire.closed.wait()


async def test_a_request_may_take_its_time() -> None:
    wire, app = Wire(), Seen()
    connection = requests(app, wire, keep_alive=0)
    connection.data_received(HEAD + b"\r\n")
    await until(lambda: bool(app.scopes))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not wire.is_closing()


async def test_a_connection_keeps_what_is_its_own_out_of_its_dictionary() -> None:
    """With more than 30 entries dictionaries share no keys, and each takes 1.3 KB more."""
    wire, app = Wire(), Seen()
    connection = requests(app, wire)
    connection.data_received(HEAD + b"\r\n")
    await until(lambda: bool(app.scopes))
    assert len(vars(connection)) <= 30


def upgraded(wire: Wire) -> weakref.ref[Requests]:
    connection = requests(Seen(), wire)
    connection.data_received(HELLO + b"\r\n")
    return weakref.ref(connection)


async def test_what_was_read_before_a_websocket_is_gone_once_it_is_one() -> None:
    """Without the garbage collector."""
    gc.disable()
    try:
        wire = Wire()
        connection = upgraded(wire)
        await until(lambda: wire.written.startswith(b"HTTP/1.1 101 "))
        await until(lambda: connection() is None)
    finally:
        gc.enable()


# --- WebSocket ---


async def test_a_handshake_that_cannot_be_read_is_refused() -> None:
    wire = Wire()
    connection = Frames(uvicorn.Config(Seen(), log_config=None), ServerState(), {})
    connection.connection_made(wire)
    connection.data_received(HELLO + b"a: " + b"x" * MAX_HEAD + b"\r\n\r\n")
    assert wire.written.startswith(b"HTTP/1.1 400 ")
    assert wire.is_closing()


async def test_a_message_in_too_many_pieces_ends_its_connection() -> None:
    wire = Wire()
    connection = await frames(wire)
    connection.data_received(sent(Opcode.TEXT, b"x", fin=False))
    connection.data_received(sent(Opcode.CONT, fin=False) * MAX_FRAMES)
    assert wire.written.endswith(sent_by_server(1009))
    assert wire.is_closing()
    assert connection.frames == []


@pytest.mark.parametrize("opcode", [Opcode.PING, Opcode.PONG])
async def test_a_flood_of_control_frames_ends_its_connection(opcode: Opcode) -> None:
    wire = Wire()
    connection = await frames(wire)
    connection.data_received(sent(opcode) * MAX_FRAMES)
    assert not wire.is_closing()
    connection.data_received(sent(opcode) * (MAX_FRAMES + 1))
    assert sent_by_server(1008) in wire.written
    assert wire.is_closing()


def sent_by_server(code: int) -> bytes:
    return Frame(Opcode.CLOSE, code.to_bytes(2)).serialize(mask=False)


async def test_after_each_read_the_others_have_their_turn() -> None:
    wire = Wire()
    connection = await frames(wire)
    connection.data_received(sent(Opcode.PING))
    assert not wire.reads
    await until(lambda: wire.reads)


async def test_a_peer_that_takes_nothing_gets_no_pongs() -> None:
    wire = Wire()
    connection = await frames(wire)
    connection.pause_writing()
    before = wire.written
    connection.data_received(sent(Opcode.PING, b"one"))
    assert wire.written == before
    connection.resume_writing()
    connection.data_received(sent(Opcode.PING, b"two"))
    assert wire.written == before + Frame(Opcode.PONG, b"two").serialize(mask=False)


async def test_a_server_stops_well_just_when_a_peer_says_goodbye() -> None:
    """The answer is written, and the connection stands until it has gone out."""
    wire = Wire()
    connection = await frames(wire)
    connection.data_received(sent(Opcode.CLOSE, (1000).to_bytes(2)))
    said = wire.written
    assert said.endswith(sent_by_server(1000))
    connection.shutdown()
    assert wire.written == said


async def test_a_server_that_stops_says_goodbye() -> None:
    wire = Wire()
    connection = await frames(wire)
    connection.shutdown()
    assert wire.written.endswith(sent_by_server(1012))
    assert wire.is_closing()


async def test_a_frame_that_is_no_text_with_a_goodbye_behind_it_ends_its_connection() -> None:
    wire = Wire()
    connection = await frames(wire)
    connection.data_received(sent(Opcode.TEXT, b"\xff") + sent(Opcode.CLOSE, (1000).to_bytes(2)))
    assert wire.written.endswith(sent_by_server(1000))
    assert wire.is_closing()
