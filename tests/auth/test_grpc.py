"""Tokens and principals of calls over gRPC, by grpcio's client, which blocks and so runs in a thread."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import grpc
import pytest

from agui_container.auth.claim_rules import SKEW_SECONDS
from agui_container.protocols.gen import agent_pb2 as roz
from agui_container.protocols.gen import kontekst_pb2 as kontekst
from tests.auth.conftest import Guard, Guarded, authorization
from tests.auth.rpcs import call_rpc, rpcs_of
from tests.engine.doubles import WAIT, ask
from tests.sse import http_client

pytestmark = pytest.mark.wire

OPEN_SERVICES = ("grpc.health.", "grpc.reflection.")
SECRET = "what-alice-said-4711"  # noqa: S105 - no password
CALLS = {
    "/roz.v1.AgentService/StreamSession": (
        roz.SessionRequest(start=roz.StartSession(environment_id="x")),
        roz.SessionRequest(ping=roz.Ping()),
    ),
    "/kontekst.AgentService/Run": (
        kontekst.RunCommand(start=kontekst.StartRunCommand(prompt="wait 600")),
        kontekst.RunCommand(approve_tool=kontekst.ApproveToolCommand(call_id="x")),
    ),
}
"""Rpcs with many requests: the first, and one that may follow."""

REQUESTS: Mapping[str, tuple[bytes, grpc.StatusCode]] = {
    "/kontekst.DaemonService/GetStatus": (b"", grpc.StatusCode.OK),
    "/kontekst.DaemonService/Shutdown": (b"", grpc.StatusCode.PERMISSION_DENIED),
    "/roz.v1.AgentService/WatchTeam": (
        roz.WatchTeamRequest(task_id="done").SerializeToString(),
        grpc.StatusCode.NOT_FOUND,
    ),
}
"""A request about Alice's thread to each rpc with one request, and its answer to Bob."""


@pytest.fixture
async def everything(guard: Guard) -> Guarded:
    guarded = await guard(run_timeout=100_000)
    async with http_client(guarded.url, authorization(guarded.token("alice"))) as http:
        await http.post("/invocations", json=ask(thread="done", run="done", text=SECRET))
    return guarded


def closed_rpcs(guarded: Guarded) -> list[str]:
    return [path for path in rpcs_of(guarded.app) if not path.strip("/").startswith(OPEN_SERVICES)]


async def test_every_rpc_asks_for_a_token_but_health_and_reflection(everything: Guarded) -> None:
    for path in closed_rpcs(everything):
        status, _ = await asyncio.to_thread(call_rpc, everything.url, path, b"", {})
        assert status is grpc.StatusCode.UNAUTHENTICATED, path
    status, _ = await asyncio.to_thread(call_rpc, everything.url, "/grpc.health.v1.Health/Check", b"", {})
    assert status is grpc.StatusCode.OK


async def test_no_rpc_shows_what_is_another_principals(everything: Guarded) -> None:
    assert closed_rpcs(everything) == sorted([*REQUESTS, *CALLS])
    headers = authorization(everything.token("bob"))
    for path, (request, expected) in REQUESTS.items():
        status, received = await asyncio.to_thread(call_rpc, everything.url, path, request, headers)
        assert status is expected, path
        assert SECRET.encode() not in received, path


@pytest.mark.parametrize("path", CALLS)
async def test_a_call_is_ended_by_a_message_after_the_expiry(everything: Guarded, path: str) -> None:
    answered = threading.Event()
    first, second = CALLS[path]

    def messages() -> Iterator[bytes]:
        yield first.SerializeToString()
        answered.wait(WAIT)
        yield second.SerializeToString()

    def talk() -> grpc.StatusCode:
        with grpc.insecure_channel(urlsplit(everything.url).netloc) as channel:
            metadata = list(authorization(everything.token()).items())
            call = channel.stream_stream(path)(messages(), timeout=WAIT, metadata=metadata)
            next(call)
            everything.clock.advance(3600 + SKEW_SECONDS)
            answered.set()
            with pytest.raises(grpc.RpcError) as ended:
                list(call)
            code: grpc.StatusCode = ended.value.code()
            return code

    assert await asyncio.to_thread(talk) is grpc.StatusCode.UNAUTHENTICATED
