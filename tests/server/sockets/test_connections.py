"""Headers, kept connections and many runs at once on a real server, with /ping beside them."""

import asyncio

import pytest

from tests.server.sockets.client import HttpExchange, ask, get, is_text, post, request, run_input, say, wait_until
from tests.server.sockets.process import ServerProcess

pytestmark = pytest.mark.wire

STREAMS = 50
PINGS = 100


async def test_ping_answers_busy_while_a_tool_blocks_and_50_runs_stream(server: ServerProcess) -> None:
    tool = await HttpExchange.open(server.port, post(run_input("call block {}")))
    await tool.until(lambda event: event["type"] == "TOOL_CALL_END")
    streams = [
        await (await HttpExchange.open(server.port, post(run_input("churn")))).until(is_text) for _ in range(STREAMS)
    ]
    reading = [asyncio.create_task(stream.rest()) for stream in streams]

    for _ in range(PINGS):
        answer = await ask(server.port, request("GET", "/ping"))
        assert (answer.status, answer.json()["status"]) == (200, "HealthyBusy")
    assert not any(task.done() for task in reading)

    await say(server.port, "release churn")
    await say(server.port, "release block")
    for stream in await asyncio.gather(*reading):
        assert set(stream.text) == {"x"}
        assert stream.events[-1]["type"] == "RUN_FINISHED"
    assert "released" in (await tool.rest()).text

    async def idle() -> bool:
        return bool((await get(server.port, "/ping"))["status"] == "Healthy")

    await wait_until(idle)


async def test_a_connection_serves_one_run_after_another(server: ServerProcess) -> None:
    """The official client and curl keep connections; the second answer must start where the first ended."""
    exchange = await HttpExchange.open(server.port, post(run_input("count 3 first")))
    first = b"".join([piece async for piece in exchange.body()])
    exchange.writer.write(post(run_input("count 3 second")))
    exchange.status = 0
    second = b"".join([piece async for piece in exchange.body()])
    assert b"first.2" in first
    assert b"second.2" in second
    assert b"first" not in second


async def test_a_body_may_come_in_pieces_with_any_or_no_content_type(server: ServerProcess) -> None:
    body = post(run_input("count 1 pieces")).partition(b"\r\n\r\n")[2]
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    for content_type in ([], ["Content-Type: text/plain"], ["Content-Type: nonsense"]):
        sent = request("POST", "/invocations", chunks, ["Transfer-Encoding: chunked", *content_type])
        exchange = await (await HttpExchange.open(server.port, sent)).until(is_text)
        assert exchange.status == 200
        assert exchange.text == "pieces.0 "
        await exchange.close()
