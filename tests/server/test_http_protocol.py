"""The additions of our HTTP protocol to uvicorn's: the end of idle and lost connections, and trailers."""

import asyncio

import pytest

from tests.server.doubles import HEAD, WAIT_SECONDS, EchoingApp, RecordingTransport, connect_http, until


async def test_a_connection_without_a_byte_is_closed_after_a_while() -> None:
    transport = RecordingTransport()
    connect_http(EchoingApp(), transport, keep_alive=0)
    async with asyncio.timeout(WAIT_SECONDS):
        await transport.closed.wait()


@pytest.mark.parametrize("error", [None, ConnectionResetError()], ids=["FIN", "RST"])
async def test_the_timer_of_a_connection_ends_with_it(error: Exception | None) -> None:
    connection = connect_http(EchoingApp(), RecordingTransport())
    timer = connection.timeout_keep_alive_task
    connection.connection_lost(error)
    assert timer is not None
    assert timer.cancelled()


async def test_trailers_are_not_taken_for_headers() -> None:
    app, transport = EchoingApp(), RecordingTransport()
    connection = connect_http(app, transport)
    framing = b"transfer-encoding: chunked\r\nx-own: head\r\n\r\n"
    connection.data_received(HEAD + framing + b"2\r\n{}\r\n0\r\nx-own: trailer\r\n\r\n")
    connection.data_received(HEAD + b"x-own: next\r\n\r\n")
    await until(lambda: len(app.scopes) == 2)
    assert [value for scope in app.scopes for name, value in scope["headers"] if name == b"x-own"] == [b"head", b"next"]
    connection.connection_lost(None)
