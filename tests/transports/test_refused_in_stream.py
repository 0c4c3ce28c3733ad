"""Refusals of ``/invocations`` in a stream: for clients that declare ``protocolVersion`` and name an event format."""

import json

import pytest

from agui_container.engine.policy import CapacityLimits
from agui_container.transports.formats import PROTOBUF
from tests.conftest import Serve
from tests.engine.doubles import Json, ask, forever
from tests.requirements import requirement
from tests.transports.responses import brief, post, refusal_event

SSE = {"accept": "text/event-stream"}


def body_with_version(version: object, **fields: object) -> bytes:
    """Return a body with this ``protocolVersion``; None leaves it out."""
    body: Json = {**ask(run="r2"), **fields}
    body.pop("protocolVersion")
    return json.dumps(body if version is None else {**body, "protocolVersion": version}).encode()


MALFORMED = {"messages": "none"}


@requirement("http.refused-in-stream")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (body_with_version("1.0"), "THREAD_BUSY"),
        (body_with_version("1.0", threadId="t2"), "RATE_LIMIT_EXCEEDED"),
        (body_with_version("1.0", forwardedProps={"command": {"type": "cancel", "runId": "nobody"}}), "RUN_NOT_FOUND"),
        (body_with_version("1.0", **MALFORMED), "VALIDATION_ERROR"),
        (body_with_version("2.0"), "VALIDATION_ERROR"),
        (b'{"protocolVersion":"1.0"}', "VALIDATION_ERROR"),
        (b'{"protocolVersion":"1.0","command":{"type":"cancel","runId":"nobody"}}', "RUN_NOT_FOUND"),
    ],
)
async def test_a_client_of_1_0_is_refused_in_the_stream(serve: Serve, body: bytes, code: str) -> None:
    client, _ = await serve(forever, CapacityLimits(open_runs=1))
    await (await client.start(ask())).until("RUN_STARTED")
    response = await post(client, body, SSE)
    assert (response.status_code, refusal_event(response)["code"]) == (200, code)


@requirement("http.refused-in-stream")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (body_with_version(None), 409),
        (body_with_version(None, **MALFORMED), 400),
        (body_with_version(1.0), 400),
        (b'{"protocolVersion":"1.0"', 400),
        (b'["protocolVersion","1.0"]', 400),
        (body_with_version("1.0", filler=" " * 2_000), 413),
    ],
)
async def test_a_body_that_declares_no_version_keeps_its_status(serve: Serve, body: bytes, status: int) -> None:
    client, _ = await serve(forever, max_body_bytes=2_000)
    await (await client.start(ask())).until("RUN_STARTED")
    assert (await post(client, body, SSE)).status_code == status


@requirement("http.refused-in-stream")
@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("*/*", 400),
        ("text/*", 400),
        ("application/json", 400),
        ("text/event-stream;q=0", 400),
        ("text/event-stream", 200),
        ("application/json, Text/Event-Stream;q=0.5", 200),
        (PROTOBUF, 200),
        (f"text/event-stream, {PROTOBUF}", 200),
    ],
)
async def test_a_client_that_names_no_event_format_keeps_its_status(serve: Serve, accept: str, status: int) -> None:
    client, _ = await serve(brief)
    response = await post(client, body_with_version("1.0", **MALFORMED), {"accept": accept})
    assert response.status_code == status


@requirement("http.refused-in-stream")
async def test_a_foreign_page_keeps_its_status(serve: Serve) -> None:
    client, _ = await serve(brief)
    assert (await post(client, body_with_version("1.0"), {**SSE, "origin": "http://evil.example"})).status_code == 403
