"""The limit of open connections, and the end of those whose clients have gone."""

import asyncio
import resource

import pytest
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from agui_container.server import connections, uvicorn_protocols
from agui_container.server.connections import (
    CLOSING_SECONDS,
    ConnectionLimit,
    raise_descriptor_limit,
)
from agui_container.server.uvicorn_protocols import HttpProtocol
from agui_container.transports.event_stream import STALLED_SECONDS
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
REQUEST = HEAD + b"\r\n"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class LimitedServer:
    """A server with room for a few connections. ``transports`` and ``protocols`` are in the order of arrival."""

    def __init__(self, room: int = 2) -> None:
        self.limit = ConnectionLimit(connections.MIN_RESERVED + room)
        self.state, self.app = ServerState(), RecordingApp()
        self.transports, self.protocols = list[RecordingTransport](), list[HttpProtocol]()

    def connect(self, sent: bytes = b"") -> RecordingTransport:
        transport = RecordingTransport()
        self.transports.append(transport)
        self.protocols.append(connect_limited(self.app, transport, self.state, self.limit))
        if sent:
            self.protocols[-1].data_received(sent)
        return transport


async def test_a_connection_whose_pipelined_request_is_being_answered_does_not_give_way() -> None:
    server = LimitedServer(room=1)
    used = server.connect(2 * REQUEST)
    server.app.may_answer.release()
    await until(lambda: len(server.app.scopes) == 2)
    server.connect()
    assert not used.is_aborted


async def test_half_sent_requests_give_way_to_new_connections_the_oldest_first() -> None:
    server = LimitedServer()
    for _ in range(2):
        server.connect(HEAD)
    new = server.connect(HEAD + b"\r\n")
    assert [transport.is_aborted for transport in server.transports] == [True, False, False]
    await until(lambda: len(server.app.scopes) == 1)
    server.app.may_answer.release()
    await until(lambda: new.written.startswith(b"HTTP/1.1 200 "))


async def test_idle_connections_give_way_too() -> None:
    server = LimitedServer()
    idle = server.connect(HEAD + b"\r\n")
    server.connect(HEAD + b"\r\n")
    server.app.may_answer.release()
    await until(lambda: idle.written.startswith(b"HTTP/1.1 200 "))
    server.connect()
    assert [transport.is_aborted for transport in server.transports] == [True, False, False]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (PING, b"200"),
        (HEAD + b"\r\n", b"503"),
        (UPGRADE + b"\r\n", b"503"),
        (PREFACE, b"400"),
    ],
)
async def test_beyond_the_limit_a_connection_can_only_ask_for_ping(sent: bytes, status: bytes) -> None:
    server = LimitedServer()
    for _ in range(2):
        server.connect(HEAD + b"\r\n")
    surplus = server.connect(sent)
    server.app.may_answer.release()
    server.app.may_answer.release()
    server.app.may_answer.release()
    await until(lambda: surplus.written.startswith(b"HTTP/1.1 " + status))
    await until(surplus.is_closing)
    assert not any(transport.is_aborted for transport in server.transports)


async def test_connections_that_are_cut_off_or_refused_are_logged_once_in_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = LimitedServer()
    for sent in (REQUEST, b"", REQUEST):
        server.connect(sent)
    assert caplog.messages == ["limit reached limit=connections"]
    server.connect(REQUEST)
    assert caplog.messages == ["limit reached limit=connections"]


@pytest.mark.parametrize(("is_closing", "seconds"), [(False, STALLED_SECONDS), (True, CLOSING_SECONDS)])
async def test_a_connection_whose_client_takes_nothing_is_cut_off(*, is_closing: bool, seconds: float) -> None:
    limit, taking, stuck, idle = ConnectionLimit(100), *(RecordingTransport() for _ in range(3))
    for transport in (taking, stuck, idle):
        limit.admit(transport)
        if is_closing:
            transport.close()
    taking.unsent = stuck.unsent = 1_000
    limit.check_progress(0.0)
    taking.unsent = 500
    stuck.unsent = 1_010
    limit.check_progress(seconds - 1)
    assert not stuck.is_aborted
    limit.check_progress(seconds)
    assert [transport.is_aborted for transport in (taking, stuck, idle)] == [False, True, False]


async def test_a_connection_that_has_ended_makes_room_for_another_one() -> None:
    server = LimitedServer()
    for _ in range(2):
        server.connect(HEAD + b"\r\n")
    server.transports[0].close()
    server.limit.check_progress(0.0)
    new = server.connect(HEAD + b"\r\n")
    await until(lambda: len(server.app.scopes) == 3)
    assert not new.written


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
