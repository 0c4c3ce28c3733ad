"""Random input is answered by a result or by an error that says what is wrong, and harms nothing."""

import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agui_container.main import build_app
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import parse
from agui_container.settings import Settings
from tests.behaviour.client import TERMINAL
from tests.behaviour.server import serving
from tests.engine.doubles import make_service
from tests.protocol.random_input import random_body
from tests.sse import events_of, http_client
from tests.websocket import receive_frame, socket_to

REQUESTS = 60
"""Random requests over each transport."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = ("threadId", "runId", "messages", "tools", "context", "state", "forwardedProps", "resume", "command", "type")


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async def agent(_: object) -> AsyncIterator[str]:
        yield "hi"

    chosen = Settings()
    async with serving(build_app(chosen, make_service(agent, chosen))) as served:
        yield served


def check_body(body: bytes) -> None:
    """Parse a body as SSE and WebSocket do. It is read, or refused with an error of the caller's."""
    refusals = []
    try:
        parse(body)
    except AppError as error:
        refusals.append(error.code)
    assert {*refusals} <= {ErrorCode.VALIDATION_ERROR, ErrorCode.PAYLOAD_TOO_LARGE}


@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_a_valid_body_with_random_changes_is_read_or_refused(seed: int) -> None:
    check_body(random_body(seed))


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(NAMES), JSON) | JSON)
def test_a_random_document_is_read_or_refused(document: object) -> None:
    check_body(json.dumps(document).encode())


@given(st.binary())
def test_random_bytes_are_read_or_refused(body: bytes) -> None:
    check_body(body)


@pytest.mark.wire
async def test_random_requests_over_sse_are_answered_in_order(url: str) -> None:
    async with http_client(url) as client:
        for seed in range(REQUESTS):
            answer = await client.post("/invocations", content=random_body(seed))
            events = events_of(answer.content)
            assert events[-1]["type"] in TERMINAL, (seed, events)
            assert answer.status_code < 500, seed
        assert (await client.get("/ping")).json()["status"] == "Healthy"


@pytest.mark.wire
async def test_random_frames_are_answered_and_leave_the_socket_open(url: str) -> None:
    async with socket_to(url) as connection:
        for seed in range(REQUESTS):
            await connection.send(random_body(seed).decode(errors="replace"))
            await connection.send(json.dumps({"command": {"type": "capabilities"}, "id": f"frame {seed}"}))
            while (frame := await receive_frame(connection)).get("id") != f"frame {seed}":
                assert frame.get("code") != "INTERNAL_ERROR", seed
