"""HTTP alone: frames, headers and statuses."""

import asyncio
import gzip
import json
import logging

import pytest

from agui_container.engine.limits import CapacityLimits
from agui_container.ports import LOG_FIELDS
from tests.conftest import Serve
from tests.engine.doubles import WAIT, ask, asking, caller, forever
from tests.sse import frames_of, http_client
from tests.web.responses import brief, get, post, refusal_event


async def test_a_stream_is_numbered_frames_that_nobody_caches(serve: Serve) -> None:
    client, _ = await serve(brief)
    response = await post(client, ask())
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-cache, no-transform"
    assert response.headers["x-accel-buffering"] == "no"
    assert "connection" not in response.headers
    frames = frames_of(response.content)
    assert [frame.seq for frame in frames] == [1, 2, 3]
    assert frames[1].data == '{"type":"CUSTOM","name":"n","value":"\u2028 é\\n"}'.encode()
    assert b"\r" not in response.content


async def test_a_compressed_body_is_refused_for_what_it_is(serve: Serve) -> None:
    client, _ = await serve(brief)
    response = await post(client, gzip.compress(json.dumps(ask()).encode()), {"content-encoding": "gzip"})
    assert response.status_code == 400
    assert refusal_event(response)["message"] == "Content-Encoding: the body must be sent as it is, not compressed."


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "VALIDATION_ERROR"),
        (b'{"a":"\xff"}', 400, "VALIDATION_ERROR"),
        (b" " * 2_001, 413, "PAYLOAD_TOO_LARGE"),
        (json.dumps(ask(run="r2")).encode(), 409, "THREAD_BUSY"),
        (json.dumps(ask("t2")).encode(), 429, "RATE_LIMIT_EXCEEDED"),
        (b'{"command":{"type":"cancel","runId":"nobody"}}', 404, "RUN_NOT_FOUND"),
        (b'{"command":{"type":"attach","runId":"nobody"}}', 404, "RUN_NOT_FOUND"),
    ],
)
@pytest.mark.parametrize("error_status", ["http", "stream"])
async def test_a_refusal_is_one_error_with_its_status(
    serve: Serve, body: bytes, status: int, code: str, error_status: str
) -> None:
    client, _ = await serve(forever, CapacityLimits(open_runs=1), error_status=error_status, max_body_bytes=2_000)
    await (await client.start(ask())).until("RUN_STARTED")
    response = await post(client, body)
    assert response.status_code == (status if error_status == "http" else 200)
    assert refusal_event(response)["code"] == code


@pytest.mark.parametrize(("accept", "version"), [("text/html", "2.0"), ("application/vnd.ag-ui.event+proto", None)])
@pytest.mark.parametrize(("error_status", "status"), [("http", 400), ("stream", 200)])
async def test_declarations_of_a_client_do_not_change_the_status_of_a_refusal(
    serve: Serve, accept: str, version: str | None, error_status: str, status: int
) -> None:
    client, _ = await serve(brief, error_status=error_status)
    body = json.dumps({**ask(), "messages": "none", "protocolVersion": version}).encode()
    assert (await post(client, body, {"accept": accept})).status_code == status


async def test_a_body_of_exactly_the_limit_is_taken(serve: Serve) -> None:
    client, _ = await serve(brief, max_body_bytes=2_000)
    body = json.dumps(ask()).encode().ljust(2_000)
    assert (await post(client, body)).status_code == 200
    assert (await post(client, body + b" ")).status_code == 413


@pytest.mark.parametrize("name", ["X-Request-Id", "X-Amzn-RequestId", "X-Amzn-Bedrock-AgentCore-Runtime-Request-Id"])
async def test_the_request_id_is_in_body_header_and_log(
    serve: Serve, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[object] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(LOG_FIELDS.get().get("requestId"))

    handler, logger = Handler(), logging.getLogger("agui_container.web.error_responses")
    client, _ = await serve(brief)
    logger.addHandler(handler)
    with caplog.at_level(logging.INFO, "agui_container.web.error_responses"):
        response = await post(client, b"{", {name: "req-42"})
    logger.removeHandler(handler)
    assert response.headers["x-request-id"] == "req-42"
    assert refusal_event(response)["metadata"]["requestId"] == "req-42"
    assert seen == ["req-42"]
    assert (await post(client, ask(), {name: "req-43"})).headers["x-request-id"] == "req-43"


@pytest.mark.parametrize("given", [None, "", "has space", "x" * 129, "tab\there"])
async def test_without_a_usable_request_id_there_is_a_fresh_one(serve: Serve, given: str | None) -> None:
    client, _ = await serve(brief)
    headers = {} if given is None else {"x-request-id": given}
    answers = [await post(client, b"{", headers) for _ in range(2)]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert ids == [refusal_event(answer)["metadata"]["requestId"] for answer in answers]
    assert len({*ids, given}) == 3


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_fault_of_the_server_says_nothing_of_itself(
    serve: Serve, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret")

    client, _ = await serve(brief)
    monkeypatch.setattr(client.service, "admit", broken)
    monkeypatch.setattr(client.service.runs, "list", broken)
    response = await (post(client, ask()) if method == "POST" else get(client, "/runs"))
    assert response.status_code == 500
    assert refusal_event(response)["code"] == "INTERNAL_ERROR"
    assert b"secret" not in response.content


async def test_a_head_request_for_a_stream_is_answered_at_once(serve: Serve) -> None:
    client, _ = await serve(forever, on_disconnect="continue")
    (await client.service.admit(asking(), caller())).close()
    async with http_client(client.url) as http, asyncio.timeout(WAIT):
        response = await http.head("/runs/r1/events")
    assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert (await client.service.runs.list(caller()))[0]["readers"] == 0


async def test_a_get_that_is_no_handshake_says_what_the_path_takes(serve: Serve) -> None:
    client, _ = await serve(forever)
    response = await get(client, "/ws")
    assert (response.status_code, response.headers["upgrade"]) == (426, "websocket")
