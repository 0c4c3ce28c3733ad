"""Calls of health and reflection, which need no token, and calls whose message does not come."""

import gc
from collections.abc import Iterator

import pytest
from h2.errors import ErrorCodes
from hyperframe.frame import ContinuationFrame, HeadersFrame

from agui_container.engine.admission.quota import Limit
from agui_container.transports.caller_middleware import SESSION_HEADER
from agui_container.transports.grpc import open_calls
from agui_container.transports.grpc.connection import MAX_HEADERS, CallStream
from tests.engine.doubles import eventually
from tests.grpc.callers import serving_callers
from tests.grpc.h2 import Raw, message
from tests.grpc.in_loop_clients import STATUS, begin_run, beside, port_of, raw
from tests.requirements import requirement
from tests.waiting_agent import WaitingAgent

CHECK, WATCH = "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
SERVED, EXHAUSTED = "0", "8"
LIMIT = 8


@pytest.fixture(autouse=True)
def _small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_calls, "MAX_UNVERIFIED_CALLS", LIMIT)


async def begin(client: Raw, path: str, number: int) -> list[int]:
    """Begin calls without a message, and wait until the server has them."""
    streams = [client.call(path) for _ in range(number)]
    await beside(client.ping)
    return streams


async def check(client: Raw) -> str:
    stream = client.call(CHECK)
    client.data(stream, message(b""), end=True)
    return (await beside(client.status, stream))[0]


@requirement("caller.streams", "grpc.calls")
@pytest.mark.parametrize("path", [CHECK, WATCH, REFLECTION])
async def test_the_oldest_call_without_a_token_gives_way_to_a_new_one(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with port_of(WaitingAgent()) as port, raw(port) as first, raw(port) as second:
        streams = await begin(first, path, LIMIT)
        assert await check(second) == SERVED
        assert await beside(first.status, streams[0]) == (
            EXHAUSTED,
            "Too many calls without a verified token are open.",
        )
        assert "limit reached limit=unverifiedCalls" in caplog.messages


@requirement("caller.streams", "grpc.calls")
async def test_calls_without_a_token_take_no_room_of_sockets() -> None:
    async with serving_callers(WaitingAgent()) as callers, raw(callers.port) as client:
        for path in (CHECK, WATCH, REFLECTION):
            await begin(client, path, 1)
        assert await check(client) == SERVED
        assert callers.service.quota.amounts[Limit.SOCKETS].used == 0


@requirement("caller.streams", "grpc.calls")
async def test_a_call_with_one_reply_counts_as_a_socket_while_its_message_does_not_come() -> None:
    async with port_of(WaitingAgent(), caller_limits='{"sockets": 1}', limit_by="session") as port, raw(port) as client:
        waiting, refused = (client.call(STATUS, (SESSION_HEADER, "session")) for _ in range(2))
        status, words = await beside(client.status, refused)
        assert (status, "1 open sockets for one identity" in words) == (EXHAUSTED, True)
        client.data(waiting, message(b""), end=True)
        assert (await beside(client.status, waiting))[0] == SERVED


@requirement("grpc.calls")
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


@requirement("grpc.calls")
@pytest.mark.parametrize("sent", [headers_without_an_end(), FRAME_WITHOUT_AN_END], ids=["headers", "frame"])
async def test_frames_and_headers_that_do_not_end_are_kept_up_to_a_limit(sent: bytes) -> None:
    async with port_of(WaitingAgent()) as port, raw(port) as client:
        client.send(sent)
        assert await beside(client.goodbye) is ErrorCodes.FRAME_SIZE_ERROR


@pytest.fixture
def no_garbage_collector() -> Iterator[None]:
    """References must be dropped, because the garbage collector may be late."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@requirement("grpc.calls")
@pytest.mark.usefixtures("no_garbage_collector")
async def test_calls_that_are_ended_leave_nothing_behind() -> None:
    async with port_of(WaitingAgent()) as port, raw(port) as client:
        streams = await begin(client, CHECK, 10 * LIMIT)
        for stream in streams[-LIMIT:]:
            client.h2.reset_stream(stream)
        client.flush()
        await eventually(lambda: live_streams() == 0)


def live_streams() -> int:
    return sum(isinstance(each, CallStream) for each in gc.get_objects())
