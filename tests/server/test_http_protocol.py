"""Limits on the resources of one HTTP connection, and the end of a connection."""

import asyncio
import gc
import socket
import struct
import weakref
from collections.abc import Iterator

import pytest
from starlette.types import Receive, Scope, Send

from agui_container.server.uvicorn_protocols import HEADER_BYTES, MAX_HEAD, MAX_PIPELINED, MAX_UNPARSED, HttpProtocol
from tests.behaviour.server import listening, port_of
from tests.server.doubles import (
    HEAD,
    UPGRADE,
    WAIT_SECONDS,
    RecordingApp,
    RecordingTransport,
    connect_http,
    until,
)


@pytest.mark.parametrize("piece", [b"a: b\r\n", b"a"])
async def test_a_head_that_does_not_end_is_refused(piece: bytes) -> None:
    transport = RecordingTransport()
    connection = connect_http(RecordingApp(), transport)
    connection.data_received(HEAD)
    for _ in range(3):
        if not transport.is_closing():
            connection.data_received(piece * (MAX_UNPARSED // len(piece) // 2))
    assert transport.written.startswith(b"HTTP/1.1 400 ")
    assert transport.written.endswith(b"The head of the request is too large.")
    assert transport.is_closing()


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * MAX_HEAD + b" HTTP/1.1\r\nhost: here\r\n\r\n",
        HEAD + b"a: " + b"x" * MAX_HEAD + b"\r\n\r\n",
        HEAD + b"a:\r\n" * (MAX_HEAD // HEADER_BYTES) + b"\r\n",
    ],
    ids=["URL", "value", "headers"],
)
async def test_a_head_that_takes_too_much_memory_is_refused_although_it_is_complete(head: bytes) -> None:
    transport, app = RecordingTransport(), RecordingApp()
    connect_http(app, transport).data_received(head)
    assert transport.written.startswith(b"HTTP/1.1 400 ")
    assert transport.is_closing()
    assert app.scopes == []


@pytest.mark.parametrize("hosts", [b"", b"host: here\r\nhost: there\r\n"], ids=["none", "two"])
async def test_a_request_that_does_not_name_its_host_once_is_refused(hosts: bytes) -> None:
    transport, app = RecordingTransport(), RecordingApp()
    connect_http(app, transport).data_received(b"GET / HTTP/1.1\r\n" + hosts + b"\r\n")
    assert transport.written.startswith(b"HTTP/1.1 400 ")
    assert transport.written.endswith(b"A request names its host once, in the header Host.")
    assert app.scopes == []


async def test_a_client_of_http_1_0_need_not_name_the_host() -> None:
    app = RecordingApp()
    connect_http(app, RecordingTransport()).data_received(b"GET / HTTP/1.0\r\n\r\n")
    await until(lambda: len(app.scopes) == 1)


async def test_more_requests_than_may_wait_are_refused_and_the_rest_of_the_read_is_not_parsed() -> None:
    transport, app = RecordingTransport(), RecordingApp()
    connection = connect_http(app, transport)
    connection.data_received((HEAD + b"\r\n") * 10_000)
    assert len(connection.pipeline) == MAX_PIPELINED
    assert transport.written.endswith(b"Too many requests wait on this connection.")
    assert transport.is_closing()


async def test_as_many_requests_as_may_wait_are_answered_in_order() -> None:
    transport, app = RecordingTransport(), RecordingApp()
    connection = connect_http(app, transport)
    for begun in (0, MAX_PIPELINED + 1):
        connection.data_received(
            b"".join(b"GET /%d HTTP/1.1\r\nhost: here\r\n\r\n" % (begun + n) for n in range(MAX_PIPELINED + 1))
        )
        for _ in range(MAX_PIPELINED + 1):
            app.may_answer.release()
        await until(lambda begun=begun: transport.written.count(b"HTTP/1.1 200 ") == begun + MAX_PIPELINED + 1)  # type: ignore[misc]
    assert [scope["path"] for scope in app.scopes] == [f"/{number}" for number in range(2 * MAX_PIPELINED + 2)]
    assert not transport.is_closing()


async def test_a_large_body_is_not_a_large_head() -> None:
    transport, app = RecordingTransport(), RecordingApp()
    connection = connect_http(app, transport)
    connection.data_received(HEAD + b"content-length: %d\r\n\r\n" % (4 * MAX_UNPARSED))
    for _ in range(4):
        connection.data_received(b"x" * MAX_UNPARSED)
    assert transport.written == b""
    assert not transport.is_closing()


async def test_a_trailer_is_no_header() -> None:
    """A proxy has checked the head only, for example the session that the request belongs to."""
    transport, app = RecordingTransport(), RecordingApp()
    connection = connect_http(app, transport)
    connection.data_received(HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nowner: another\r\n\r\n")
    await until(lambda: bool(app.scopes))
    assert app.scopes[0]["headers"] == [(b"host", b"here"), (b"transfer-encoding", b"chunked")]


async def test_send_waits_for_a_client_that_does_not_read() -> None:
    transport, sent = RecordingTransport(), list[int]()

    async def stream(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(4):
            await send({"type": "http.response.body", "body": b"%d" % number, "more_body": True})
            sent.append(number)

    connection = connect_http(stream, transport)
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


async def test_while_requests_wait_for_their_answers_no_others_are_read() -> None:
    transport, app = RecordingTransport(), RecordingApp()
    connection = connect_http(app, transport)
    connection.data_received((HEAD + b"\r\n") * 3)
    await until(lambda: len(app.scopes) == 1)
    assert not transport.is_reading_on
    app.may_answer.release()
    await until(lambda: len(app.scopes) == 2)
    assert not transport.is_reading_on
    app.may_answer.release()
    await until(lambda: len(app.scopes) == 3)
    assert transport.is_reading_on


@pytest.mark.parametrize("begun", [b"", b"GET / HT", b"\r\n"])
async def test_a_connection_without_a_whole_head_is_closed_after_a_while(begun: bytes) -> None:
    transport = RecordingTransport()
    connection = connect_http(RecordingApp(), transport, keep_alive=0)
    if begun:
        connection.data_received(begun)
    async with asyncio.timeout(WAIT_SECONDS):
        await transport.closed.wait()


async def test_a_request_may_take_its_time() -> None:
    transport, app = RecordingTransport(), RecordingApp()
    connection = connect_http(app, transport, keep_alive=0)
    connection.data_received(HEAD + b"\r\n")
    await until(lambda: bool(app.scopes))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not transport.is_closing()


async def test_a_pipelined_request_may_take_its_time_for_its_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agui_container.server.uvicorn_protocols.LINGER_SECONDS", 0)
    transport, app = RecordingTransport(), RecordingApp()
    connection = connect_http(app, transport)
    connection.data_received(HEAD + b"\r\n" + HEAD + b"content-length: 2\r\n\r\n{")
    app.may_answer.release()
    await until(lambda: len(app.scopes) == 2)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not transport.is_closing()


def upgrade(transport: RecordingTransport) -> weakref.ref[HttpProtocol]:
    connection = connect_http(RecordingApp(), transport)
    connection.data_received(UPGRADE + b"\r\n")
    return weakref.ref(connection)


@pytest.fixture
def no_garbage_collector() -> Iterator[None]:
    """References must be dropped, because the garbage collector may be late."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage_collector")
async def test_the_http_protocol_of_a_websocket_is_released() -> None:
    transport = RecordingTransport()
    connection = upgrade(transport)
    await until(lambda: transport.written.startswith(b"HTTP/1.1 101 "))
    await until(lambda: connection() is None)


async def test_a_connection_is_not_upgraded_while_a_response_is_sent() -> None:
    transport, app = RecordingTransport(), RecordingApp()
    connection = connect_http(app, transport)
    connection.data_received(HEAD + b"\r\n")
    await until(lambda: len(app.scopes) == 1)
    connection.data_received(UPGRADE + b"\r\n")
    assert transport.written.startswith(b"HTTP/1.1 400 ")
    assert transport.is_closing()


@pytest.mark.usefixtures("no_garbage_collector")
@pytest.mark.parametrize("error", [None, ConnectionResetError()], ids=["FIN", "RST"])
@pytest.mark.parametrize("is_answered", [False, True])
async def test_a_connection_that_is_lost_releases_its_requests(error: Exception | None, *, is_answered: bool) -> None:
    """Lose a connection with one request in progress and one that waits."""
    transport, app = RecordingTransport(), RecordingApp()
    connection = connect_http(app, transport)
    connection.data_received((HEAD + b"\r\n") * (1 if is_answered else 2))
    await until(lambda: len(app.scopes) == 1)
    if is_answered:
        app.may_answer.release()
        await until(lambda: bool(transport.written))
    connection.connection_lost(error)
    app.may_answer.release()
    app.scopes.clear()
    found = weakref.ref(connection)
    del connection
    await until(lambda: found() is None)


@pytest.mark.parametrize("error", [None, ConnectionResetError()], ids=["FIN", "RST"])
async def test_the_request_that_is_being_answered_is_told_of_a_lost_connection(error: Exception | None) -> None:
    """Uvicorn itself notifies only the last request."""
    messages = list[str]()

    async def wait_for_the_end(_scope: Scope, receive: Receive, _send: Send) -> None:
        while not messages or messages[-1] != "http.disconnect":
            messages.append((await receive())["type"])

    connection = connect_http(wait_for_the_end, RecordingTransport())
    connection.data_received((HEAD + b"\r\n") * 2)
    await until(lambda: messages == ["http.request"])
    connection.connection_lost(error)
    await until(lambda: messages == ["http.request", "http.disconnect"])


async def test_connections_that_end_with_a_reset_leave_nothing_behind() -> None:
    async def answer(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async with listening(answer, lifespan="off") as url:
        for _ in range(200):
            await ask_and_reset(port_of(url))
        await until(lambda: not live_protocols())


def live_protocols() -> list[HttpProtocol]:
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, HttpProtocol)]


async def ask_and_reset(port: int) -> None:
    """Send a request with a token, read the response, and end the connection with an RST."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HEAD + b"authorization: Bearer secret\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    await writer.wait_closed()
