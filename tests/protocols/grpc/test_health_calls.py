"""Frames and headers that are too large end their connection, and no other one."""

import pytest
from h2.errors import ErrorCodes
from hyperframe.frame import ContinuationFrame, HeadersFrame

from agui_container.protocols.grpc.connection import MAX_HEADERS
from tests.protocols.grpc.in_loop_clients import begin_run, beside, port_of, raw
from tests.waiting_agent import WaitingAgent

pytestmark = pytest.mark.wire

CHECK = "/grpc.health.v1.Health/Check"
SERVED = "0"


async def test_headers_that_are_too_large_end_their_connection() -> None:
    agent = WaitingAgent()
    async with port_of(agent) as port, raw(port) as other:
        stream = await begin_run(other)
        async with raw(port) as client:
            client.call(CHECK, ("x-a", "x" * MAX_HEADERS))
            assert await beside(client.goodbye) is ErrorCodes.ENHANCE_YOUR_CALM
        agent.may_end.set()
        assert (await beside(other.status, stream))[0] == SERVED


def headers_without_an_end() -> bytes:
    first, further = HeadersFrame(1, data=bytes(16_000)), ContinuationFrame(1, data=bytes(16_000))
    return first.serialize() + further.serialize() * 2


FRAME_WITHOUT_AN_END = (10_000_000).to_bytes(3, "big") + bytes(5) + b"\x01" + bytes(2 * MAX_HEADERS)


@pytest.mark.parametrize("sent", [headers_without_an_end(), FRAME_WITHOUT_AN_END], ids=["headers", "frame"])
async def test_frames_and_headers_that_do_not_end_are_kept_up_to_a_limit(sent: bytes) -> None:
    async with port_of(WaitingAgent()) as port, raw(port) as client:
        client.send(sent)
        assert await beside(client.goodbye) is ErrorCodes.FRAME_SIZE_ERROR
