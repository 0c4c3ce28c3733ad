"""The limit of open connections, and the end of those whose clients have gone."""

import asyncio
import resource
import socket

import pytest
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from agui_container.server import connections, uvicorn_protocols
from agui_container.server.connections import CLOSING_SECONDS, LOG_SECONDS, ConnectionLimit, raise_descriptor_limit
from agui_container.server.uvicorn_protocols import HttpProtocol
from tests.server.doubles import (
    HEAD,
    UPGRADE,
    WAIT_SECONDS,
    RecordingApp,
    RecordingTransport,
    connect_http,
    connect_limited,
    until,
)

PING = b"GET /ping HTTP/1.1\r\nhost: here\r\n\r\n"


class LimitedServer:
    """A server with room for two connections. ``transports`` and ``protocols`` are in the order of arrival."""

    def __init__(self) -> None:
        self.limit, self.state, self.app = ConnectionLimit(connections.MIN_RESERVED + 2), ServerState(), RecordingApp()
        self.transports, self.protocols = list[RecordingTransport](), list[HttpProtocol]()

    def connect(self, sent: bytes = b"") -> RecordingTransport:
        transport = RecordingTransport()
        self.transports.append(transport)
        self.protocols.append(connect_limited(self.app, transport, self.state, self.limit))
        if sent:
            self.protocols[-1].data_received(sent)
        return transport


async def test_half_sent_requests_give_way_to_new_connections_the_oldest_first() -> None:
    crowd = LimitedServer()
    for _ in range(2):
        crowd.connect(HEAD)
    new = crowd.connect(HEAD + b"\r\n")
    assert [transport.is_aborted for transport in crowd.transports] == [True, False, False]
    await until(lambda: len(crowd.app.scopes) == 1)
    crowd.app.may_answer.release()
    await until(lambda: new.written.startswith(b"HTTP/1.1 200 "))


async def test_idle_connections_give_way_too() -> None:
    crowd = LimitedServer()
    idle = crowd.connect(HEAD + b"\r\n")
    crowd.connect(HEAD + b"\r\n")
    crowd.app.may_answer.release()
    await until(lambda: idle.written.startswith(b"HTTP/1.1 200 "))
    crowd.connect()
    assert [transport.is_aborted for transport in crowd.transports] == [True, False, False]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (PING, b"200"),
        (HEAD + b"\r\n", b"503"),
        (UPGRADE + b"\r\n", b"503"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
    ],
)
async def test_beyond_the_limit_a_connection_can_only_ask_for_ping(sent: bytes, status: bytes) -> None:
    crowd = LimitedServer()
    for _ in range(2):
        crowd.connect(HEAD + b"\r\n")
    surplus = crowd.connect(sent)
    crowd.app.may_answer.release()
    crowd.app.may_answer.release()
    crowd.app.may_answer.release()
    await until(lambda: surplus.written.startswith(b"HTTP/1.1 " + status))
    await until(surplus.is_closing)
    assert not any(transport.is_aborted for transport in crowd.transports)


async def test_the_limit_is_logged_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    limit, transport = ConnectionLimit(0), RecordingTransport()
    held = [connect_http(RecordingApp(), transport) for _ in range(4)]
    for now, connection in zip((0.0, 1.0, LOG_SECONDS, LOG_SECONDS + 1), held, strict=True):
        limit.admit(connection, 2, now)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        "too many connections open=2 limit=1 closed_without_request=0 limited_to_ping=1",
        "too many connections open=2 limit=1 closed_without_request=2 limited_to_ping=0",
    ]


async def test_a_connection_that_is_closed_and_whose_client_takes_nothing_is_cut_off() -> None:
    limit, taking, stuck, open_one = ConnectionLimit(100), *(RecordingTransport() for _ in range(3))
    held = [connect_http(RecordingApp(), transport) for transport in (taking, stuck, open_one)]
    for transport in (taking, stuck, open_one):
        transport.unsent = 1_000
    taking.close()
    stuck.close()
    limit.check(held, 0.0)
    taking.unsent = 500
    limit.check(held, CLOSING_SECONDS)
    assert [transport.is_aborted for transport in (taking, stuck, open_one)] == [False, True, False]


def test_the_soft_limit_of_open_files_is_raised() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
        assert raise_descriptor_limit() == min(hard, connections.MAX_DESCRIPTORS)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard, connections.MAX_DESCRIPTORS)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("is_begun", [False, True])
async def test_a_client_that_sends_no_more_gets_its_answer_unless_it_left_a_stream(*, is_begun: bool) -> None:
    may_end = asyncio.Event()

    async def answer(_scope: Scope, _receive: Receive, send: Send) -> None:
        if is_begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await may_end.wait()

    connection = connect_http(answer, RecordingTransport())
    connection.data_received(HEAD + b"\r\n")
    await asyncio.sleep(0)
    assert connection.eof_received() is not is_begun
    assert connection.cycle.keep_alive is is_begun
    connection.connection_lost(None)
    may_end.set()
    await until(lambda: not connection.tasks)


async def test_a_request_that_ends_in_the_middle_gets_no_answer() -> None:
    connection = connect_http(RecordingApp(), RecordingTransport())
    connection.data_received(HEAD + b"content-length: 2\r\n\r\n{")
    assert not connection.eof_received()
    connection.connection_lost(None)


async def test_a_half_closed_connection_whose_client_resets_it_is_cut_off() -> None:
    limit, transport = ConnectionLimit(100), RecordingTransport()
    ours, theirs = socket.socketpair()
    transport._extra["socket"] = ours  # type: ignore[attr-defined] # as asyncio keeps it
    connection = connect_limited(RecordingApp(), transport, ServerState(), limit)
    connection.data_received(HEAD + b"\r\n")
    assert connection.eof_received()
    limit.check([], 0.0)
    assert not transport.is_aborted
    theirs.close()
    limit.check([], 0.0)
    assert transport.is_aborted
    ours.close()
    connection.connection_lost(None)


async def test_behind_an_early_answer_a_body_is_read_for_a_short_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn_protocols, "LINGER_SECONDS", 0.0)
    transport, app = RecordingTransport(), RecordingApp()
    connection = connect_http(app, transport)
    connection.data_received(HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n")
    app.may_answer.release()
    await until(lambda: transport.written.startswith(b"HTTP/1.1 200 "))
    async with asyncio.timeout(WAIT_SECONDS):
        await transport.closed.wait()


async def test_a_body_that_ends_soon_behind_an_early_answer_keeps_its_connection() -> None:
    transport, app = RecordingTransport(), RecordingApp()
    connection = connect_http(app, transport)
    connection.data_received(HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n")
    app.may_answer.release()
    await until(lambda: transport.written.startswith(b"HTTP/1.1 200 "))
    connection.data_received(b"0\r\n\r\n" + HEAD + b"\r\n")
    await until(lambda: len(app.scopes) == 2)
    assert not transport.is_closing()
