"""HTTP on the wire: headers, framing, keep-alive comments and methods."""

import re

import pytest

from tests.sockets.client import HttpExchange, HttpResponse, ask, events_of, is_text, post, request, run_input, say
from tests.sockets.process import ServerProcess, Servers

FRAME = re.compile(rb"id: (\d+)\ndata: (\{[^\n]*\})\n\n")
KEEP_ALIVE = b": keep-alive\n\n"


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


@pytest.mark.parametrize("command", ["count 50 x", "think about it", 'call calculate {"expression": "6*7"}'])
async def test_every_event_is_one_frame_with_its_number_and_lf_framing(server: ServerProcess, command: str) -> None:
    body = (await ask(server.port, post(run_input(command)))).body
    assert b"\r" not in body
    assert FRAME.sub(b"", body) == b""
    assert [int(number) for number, _ in FRAME.findall(body)] == list(range(1, len(events_of(body)) + 1))


async def test_a_replay_has_the_same_bytes(server: ServerProcess) -> None:
    document = run_input("count 50 x")
    first = await ask(server.port, post(document))
    path = f"/runs/{document['runId']}/events"
    after_ten = b"".join(b"id: %b\ndata: %b\n\n" % found for found in FRAME.findall(first.body)[10:])
    again = [
        await ask(server.port, post(document)),
        await ask(server.port, request("GET", path)),
    ]
    rest = [
        await ask(server.port, request("GET", f"{path}?after=10")),
        await ask(server.port, request("GET", path, headers=["Last-Event-ID: 10"])),
    ]
    assert {answer.body for answer in again} == {first.body}
    assert {answer.body for answer in rest} == {after_ten}


async def test_silence_is_broken_by_comments_and_the_run_is_whole(servers: Servers) -> None:
    port = servers(AGUI_KEEPALIVE="0.2").port
    document = run_input("hold")
    exchange = await HttpExchange.open(port, post(document))
    received = b""
    async for piece in exchange.body():
        received += piece
        if received.endswith(KEEP_ALIVE * 3):
            await say(port, f"release {document['runId']}")
    assert received.count(KEEP_ALIVE) >= 3
    assert b"\r" not in received
    assert FRAME.sub(b"", received).replace(KEEP_ALIVE, b"") == b""
    assert [event["type"] for event in events_of(received)][-1] == "RUN_FINISHED"


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


async def test_pipelined_requests_are_answered_in_order(server: ServerProcess) -> None:
    sent = b"".join(post(run_input(f"count 3 {name}")) for name in ("first", "second"))
    exchange = await HttpExchange.open(server.port, sent)
    assert b"first.2" in b"".join([piece async for piece in exchange.body()])
    exchange.status = 0
    assert b"second.2" in b"".join([piece async for piece in exchange.body()])


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
async def test_invocations_take_post_only(server: ServerProcess, method: str) -> None:
    exchange = await (await HttpExchange.open(server.port, request(method, "/invocations"))).head()
    assert exchange.status == 405
    assert exchange.headers["allow"] == "POST"


async def test_ping_is_plain_json_for_the_platform(server: ServerProcess) -> None:
    answer = await ask(server.port, request("GET", "/ping"))
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["status"] in ("Healthy", "HealthyBusy")
    assert isinstance(answer.json()["time_of_last_update"], int)


async def test_a_refusal_keeps_its_status_or_hides_it_from_the_platform(servers: Servers) -> None:
    refusals: list[HttpResponse] = [
        await ask(servers(**settings).port, post(b"{}")) for settings in ({}, {"AGUI_ERROR_STATUS": "stream"})
    ]
    assert [refusal.status for refusal in refusals] == [400, 200]
    assert {refusal.events[0]["code"] for refusal in refusals} == {"VALIDATION_ERROR"}
    assert {refusal.headers["content-type"] for refusal in refusals} == {"text/event-stream; charset=utf-8"}


async def test_a_web_page_of_another_origin_is_refused(server: ServerProcess) -> None:
    body = post(run_input("hi")).partition(b"\r\n\r\n")[2]
    length = f"Content-Length: {len(body)}"
    foreign = await ask(server.port, request("POST", "/invocations", body, [length, "Origin: https://evil.example"]))
    own = await ask(server.port, request("POST", "/invocations", body, [length, "Origin: http://localhost:80"]))
    assert (foreign.status, foreign.events[0]["code"]) == (403, "ACCESS_DENIED")
    assert own.status == 200


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
