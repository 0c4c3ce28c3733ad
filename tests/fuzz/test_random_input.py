"""Random input is answered by a result or by an error that says what is wrong, and harms nothing.

``python -m tests.fuzz`` does the same for a million inputs.
"""

import asyncio
import json
from collections.abc import AsyncIterator

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agui_container.main import build_app
from agui_container.settings import Settings
from agui_container.transports.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from tests.auth.rpcs import call_rpc
from tests.behaviour.client import TERMINAL
from tests.behaviour.server import serving
from tests.engine.doubles import make_service
from tests.fuzz.inputs import MESSAGE_SAMPLES, random_body, random_message
from tests.fuzz.targets import check_body, check_message
from tests.requirements import requirement
from tests.sse import events_of, http_client
from tests.websocket import receive_frame, socket_to

REQUESTS = 120
"""Random requests over each transport."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
RPCS = {
    roz.SessionRequest: "/roz.v1.AgentService/StreamSession",
    roz.WatchTeamRequest: "/roz.v1.AgentService/WatchTeam",
    kontekst.RunCommand: "/kontekst.AgentService/Run",
}
NAMES = ("threadId", "runId", "messages", "tools", "context", "state", "forwardedProps", "resume", "command", "type")


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """A server around an agent that answers at once."""

    async def agent(_: object) -> AsyncIterator[str]:
        yield "hi"

    chosen = Settings()
    async with serving(build_app(chosen, make_service(agent, chosen))) as served:
        yield served


@requirement("fuzz.bodies")
@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_a_valid_body_with_random_changes_is_read_or_refused(seed: int) -> None:
    check_body(random_body(seed))


@requirement("fuzz.bodies")
@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(NAMES), JSON) | JSON)
def test_a_random_document_is_read_or_refused(document: object) -> None:
    check_body(json.dumps(document).encode())


@requirement("fuzz.bodies")
@given(st.binary())
def test_random_bytes_are_read_or_refused(body: bytes) -> None:
    check_body(body)


@requirement("fuzz.bodies")
@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_a_grpc_message_with_random_changes_is_read_or_refused(seed: int) -> None:
    check_message(*random_message(seed))


@requirement("fuzz.bodies")
def test_grpc_messages_are_changed_from_every_variant() -> None:
    assert MESSAGE_SAMPLES.keys() == RPCS.keys()
    for kind, samples in MESSAGE_SAMPLES.items():
        variants = [name for group in kind.DESCRIPTOR.oneofs for name in (field.name for field in group.fields)]
        assert not variants or [next(iter(sample)) for sample in samples] == variants


@requirement("fuzz.requests")
async def test_random_requests_over_sse_are_answered_in_order(url: str) -> None:
    async with http_client(url) as client:
        for seed in range(REQUESTS):
            answer = await client.post("/invocations", content=random_body(seed))
            events = events_of(answer.content)
            assert events[-1]["type"] in TERMINAL, (seed, events)
            assert answer.status_code < 500, seed
        assert (await client.get("/ping")).json()["status"] == "Healthy"


@requirement("fuzz.requests")
async def test_random_frames_are_answered_and_leave_the_socket_open(url: str) -> None:
    async with socket_to(url) as connection:
        for seed in range(REQUESTS):
            await connection.send(random_body(seed).decode(errors="replace"))
            await connection.send(json.dumps({"command": {"type": "capabilities"}, "id": f"frame {seed}"}))
            while (frame := await receive_frame(connection)).get("id") != f"frame {seed}":
                assert frame.get("code") != "INTERNAL_ERROR", seed


@requirement("fuzz.requests")
async def test_random_grpc_messages_are_answered_with_a_status_that_is_no_fault(url: str) -> None:
    for seed in range(REQUESTS // 3):
        kind, body = random_message(seed)
        status, _ = await asyncio.to_thread(call_rpc, url, RPCS[kind], body, {})
        assert status not in {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}, seed
