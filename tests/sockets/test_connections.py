"""Headers, kept connections and many runs at once on a real server, with /ping beside them."""

import asyncio

from tests.sockets.client import HttpExchange, ask, get, is_text, post, request, run_input, say, wait_until
from tests.sockets.process import ServerProcess

RUNS = 200
STREAMS = 50
PINGS = 100


async def test_200_runs_at_once_really_overlap_and_each_is_whole(server: ServerProcess) -> None:
    """All are held open together, so the server has 200 at a time whatever the speed of the client."""
    documents = [run_input("hold") for _ in range(RUNS)]
    exchanges = [await HttpExchange.open(server.port, post(document)) for document in documents]
    for exchange in exchanges:
        await exchange.until(is_text)
    states = {run["runId"]: run["status"] for run in (await get(server.port, "/runs"))["runs"]}
    assert {states[document["runId"]] for document in documents} == {"running"}
    for document in documents:
        await say(server.port, f"release {document['runId']}")
    for exchange in exchanges:
        assert (await exchange.rest()).text == "before after"
        await exchange.close()


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


# --- headers and kept connections -------------------------------------------------------------------------------------


async def test_a_stream_says_what_it_is_and_that_nobody_may_hold_it_back(server: ServerProcess) -> None:
    answer = await ask(server.port, post(run_input("count 3 x")))
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["transfer-encoding"] == "chunked"
    assert answer.headers["x-request-id"]
    assert "server" not in answer.headers
    assert "content-encoding" not in answer.headers


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


async def test_a_path_with_a_slash_too_many_is_unknown_and_redirects_nowhere(server: ServerProcess) -> None:
    """A redirect would name the host that the caller has written."""
    answer = await ask(server.port, request("GET", "/ping/", headers=("X-Other: 1",)))
    assert answer.status == 404
    assert "location" not in answer.headers
