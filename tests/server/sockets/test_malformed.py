"""Malformed bodies and frames on real sockets: the right code, one plain error, and nothing else is harmed."""

import json
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.server.sockets.client import HttpExchange, ask, get, is_last, is_text, post, request, run_input, say, text_of
from tests.server.sockets.process import ServerProcess
from tests.websocket import receive_until, socket_to

pytestmark = pytest.mark.wire

NOT_UTF8 = {"invalid UTF-8": b'"\xff\xfe"', "UTF-16": "{}".encode("utf-16"), "an encoded surrogate": b'"\xed\xa0\x80"'}
LARGE = b'{"messages": "' + b"x" * 11_000_000 + b'"}'
TOO_LONG_HEADER = struct.pack("!BBQ4s", 0x81, 0xFF, 25_000_000, b"mask")
"""A final text frame, masked, and its length; the data would follow."""

SECRETS = ("Traceback", ".py", f"{Path(__file__).parents[3]}/", "site-packages", "object at 0x", "Exception", "Error")


def assert_discreet(text: str) -> None:
    assert [secret for secret in SECRETS if secret in text] == []


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


@pytest.mark.parametrize("framing", ["length", "chunks"])
async def test_a_body_of_11_mb_is_refused_as_too_large(server: ServerProcess, framing: str) -> None:
    sent = post(LARGE)
    if framing == "chunks":
        chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(LARGE), LARGE)
        sent = request("POST", "/invocations", chunks, ["Transfer-Encoding: chunked"])
    answer = await ask(server.port, sent)
    assert answer.status == 413
    (error,) = answer.events
    assert error["code"] == "PAYLOAD_TOO_LARGE"
    assert ": " in error["message"] or error["message"].endswith(".")
    assert_discreet(json.dumps(error))


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


async def test_a_frame_of_25_mb_ends_its_connection_as_too_big(server: ServerProcess) -> None:
    """Its header is enough: it is never held in memory, so it cannot be answered by a control frame."""
    async with socket_to(server.port, compression=None) as connection:
        connection.transport.write(TOO_LONG_HEADER)
        await connection.wait_closed()
    assert connection.close_code == 1009


async def test_a_text_frame_that_is_not_utf8_ends_its_connection(server: ServerProcess) -> None:
    """RFC 6455, section 8.1: the endpoint must fail the connection."""
    for name, frame in NOT_UTF8.items():
        async with socket_to(server.port) as connection:
            await connection.send(frame, text=True)
            await connection.wait_closed()
        assert connection.close_code == 1007, name
