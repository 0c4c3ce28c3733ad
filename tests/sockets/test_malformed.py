"""Malformed bodies and frames on real sockets: the right code, one plain error, and nothing else is harmed."""

import asyncio
import contextlib
import json
import struct
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from websockets.exceptions import ConnectionClosed

from tests.sockets.client import (
    PATIENCE,
    HttpExchange,
    ask,
    get,
    is_last,
    is_text,
    post,
    request,
    run_input,
    say,
    text_of,
)
from tests.sockets.malformed import INVALID, LARGE, MEGABYTE, NOT_UTF8, assert_discreet, assert_error
from tests.sockets.process import ServerProcess
from tests.websocket import receive_frame, receive_until, socket_to

TOO_LONG = "x" * 25 * MEGABYTE
TOO_LONG_HEADER = struct.pack("!BBQ4s", 0x81, 0xFF, len(TOO_LONG), b"mask")
"""A final text frame, masked, and its length; the data would follow."""


@pytest_asyncio.fixture(autouse=True)
async def check_other_runs(server: ServerProcess) -> AsyncIterator[None]:
    """Keep a run open over each transport during the test, and check that both end and that the server is healthy."""
    over_sse, over_ws = run_input("hold"), run_input("hold")
    exchange = await (await HttpExchange.open(server.port, post(over_sse))).until(is_text)
    async with socket_to(server.port) as connection:
        await connection.send(json.dumps(over_ws))
        frames = await receive_until(connection, is_text)
        yield
        assert (await get(server.port, "/ping"))["status"] == "HealthyBusy"
        await say(server.port, f"release {over_sse['runId']}")
        await say(server.port, f"release {over_ws['runId']}")
        frames += await receive_until(connection, is_last)
    await exchange.rest()
    assert (exchange.text, text_of(frames)) == ("before after", "before after")


# --- HTTP ---


async def test_each_malformed_body_is_refused_with_one_error_frame(server: ServerProcess) -> None:
    for name, body in {**INVALID, **NOT_UTF8}.items():
        answer = await ask(server.port, post(body))
        assert answer.status == 400, name
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.body.startswith(b"data: ")
        assert answer.body.endswith(b"\n\n")
        assert answer.body.count(b"\n") == 2
        assert_error(answer.events[0], "VALIDATION_ERROR")
        assert answer.events[0]["metadata"]["requestId"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("framing", ["length", "chunks"])
async def test_a_body_of_11_mb_is_refused_as_too_large(server: ServerProcess, framing: str) -> None:
    sent = post(LARGE)
    if framing == "chunks":
        chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(LARGE), LARGE)
        sent = request("POST", "/invocations", chunks, ["Transfer-Encoding: chunked"])
    answer = await ask(server.port, sent)
    assert answer.status == 413
    assert len(answer.events) == 1
    assert_error(answer.events[0], "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (["Content-Length: ten"], b"{}"),
        (["Content-Length: -1"], b"{}"),
        (["Content-Length: 2", "Content-Length: 3"], b"{}"),
        (["Content-Length: 2", "Transfer-Encoding: chunked"], b"{}"),
        (["Transfer-Encoding: chunked"], b"zz\r\n{}\r\n0\r\n\r\n"),
    ],
)
async def test_a_body_of_no_clear_length_is_refused(server: ServerProcess, headers: list[str], body: bytes) -> None:
    exchange = await (await HttpExchange.open(server.port, request("POST", "/invocations", body, headers))).head()
    assert exchange.status == 400
    assert_discreet((await exchange.reader.read()).decode())


async def test_a_body_longer_than_its_content_length_says_is_cut_and_refused(server: ServerProcess) -> None:
    body = json.dumps(run_input("hi")).encode()
    sent = request("POST", "/invocations", body, ["Content-Length: 10"])
    exchange = await (await HttpExchange.open(server.port, sent)).head()
    assert exchange.status == 400
    assert_discreet((await exchange.reader.read()).decode())


@pytest.mark.parametrize("reset", [False, True])
async def test_a_client_that_leaves_in_the_middle_of_its_body_harms_nothing(server: ServerProcess, reset: bool) -> None:  # noqa: FBT001
    body = json.dumps(document := run_input("hi")).encode()
    sent = request("POST", "/invocations", body, ["Content-Length: 1000000"])
    exchange = await HttpExchange.open(server.port, sent)
    await exchange.writer.drain()
    await exchange.close(reset=reset)
    assert document["runId"] not in [run["runId"] for run in (await get(server.port, "/runs"))["runs"]]


async def test_a_client_that_ends_its_body_early_gets_no_run(server: ServerProcess) -> None:
    body = json.dumps(document := run_input("hi")).encode()
    sent = request("POST", "/invocations", body, [f"Content-Length: {len(body) + 1}"])
    exchange = await HttpExchange.open(server.port, sent)
    exchange.writer.write_eof()
    async with asyncio.timeout(PATIENCE):
        assert_discreet((await exchange.reader.read()).decode())
    assert document["runId"] not in [run["runId"] for run in (await get(server.port, "/runs"))["runs"]]


# --- WebSocket ---


async def test_each_malformed_frame_is_answered_and_the_connection_goes_on(server: ServerProcess) -> None:
    async with socket_to(server.port) as connection:
        for name, frame in INVALID.items():
            await connection.send(frame, text=True)
            told = await receive_frame(connection)
            assert told["control"] == "error", name
            assert_error(told, "VALIDATION_ERROR")
        await connection.send(json.dumps(run_input("count 1 well")))
        assert text_of(await receive_until(connection, is_last)) == "well.0 "


async def test_a_frame_of_25_mb_ends_its_connection_as_too_big(server: ServerProcess) -> None:
    """Its header is enough: it is never held in memory, so it cannot be answered by a control frame."""
    async with socket_to(server.port, compression=None) as connection:
        connection.transport.write(TOO_LONG_HEADER)
        await connection.wait_closed()
    assert connection.close_code == 1009


async def test_no_frame_grows_because_compression_is_not_agreed_upon(server: ServerProcess) -> None:
    async with socket_to(server.port, compression="deflate") as connection:
        assert connection.protocol.extensions == []
        await connection.send(json.dumps(run_input("count 1 well")))
        assert text_of(await receive_until(connection, is_last)) == "well.0 "


async def test_a_frame_of_25_mb_that_is_sent_all_the_same_harms_nothing(server: ServerProcess) -> None:
    """The client may miss the close frame, because the server does not read the rest of the message."""
    async with socket_to(server.port, compression=None) as connection:
        with contextlib.suppress(ConnectionClosed):
            await connection.send(TOO_LONG)
        await connection.wait_closed()
    assert connection.close_code in (1006, 1009)


async def test_a_text_frame_that_is_not_utf8_ends_its_connection(server: ServerProcess) -> None:
    """RFC 6455, section 8.1: the endpoint must fail the connection."""
    for name, frame in NOT_UTF8.items():
        async with socket_to(server.port) as connection:
            await connection.send(frame, text=True)
            await connection.wait_closed()
        assert connection.close_code == 1007, name
