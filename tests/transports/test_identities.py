"""Identities of callers: the principal of a token, or the session where a gateway sets its header."""

import asyncio
from dataclasses import replace
from itertools import count

import httpx
from websockets.asyncio.client import ClientConnection

from agui_container.engine.policy import IdentityLimits
from agui_container.ports import Caller
from agui_container.ports.auth import Principal
from agui_container.transports.caller_middleware import SESSION_HEADER
from tests.behaviour.over_ws import OverWs
from tests.conftest import Serve
from tests.engine.doubles import WAIT, ask, forever
from tests.requirements import requirement
from tests.sse import http_client
from tests.transports.responses import refusal_event
from tests.transports.sockets import frame_names
from tests.waiting_agent import WaitingAgent, run_id_event
from tests.websocket import receive, refused_handshake, send

RUNS = count()


async def start(url: str, session: str) -> int:
    """Start a run of a session, and disconnect. Return the status."""
    async with httpx.AsyncClient(base_url=url, timeout=WAIT) as http:
        given = {SESSION_HEADER: session}
        request = http.build_request("POST", "/invocations", json=ask(run=f"run {next(RUNS)}"), headers=given)
        response = await http.send(request, stream=True)
        await response.aclose()
        return response.status_code


@requirement("caller.identity")
async def test_a_session_that_a_client_names_is_no_identity(serve: Serve) -> None:
    client, _ = await serve(forever, caller_limits=IdentityLimits(runs_per_minute=1))
    assert [await start(client.url, session) for session in ("one", "one", "two")] == [200, 200, 200]


@requirement("caller.identity")
async def test_sessions_that_a_gateway_names_have_an_allowance_each(serve: Serve) -> None:
    limits = IdentityLimits(runs_per_minute=1)
    client, _ = await serve(forever, caller_limits=limits, limit_by="session", scope="none", on_busy="enqueue")
    assert [await start(client.url, session) for session in ("one", "one", "two")] == [200, 429, 200]


# --- sockets ---


async def connect_socket(client: OverWs, session: str) -> ClientConnection:
    return await client.connect(additional_headers={SESSION_HEADER: session})


@requirement("caller.streams")
async def test_sockets_of_one_caller_leave_room_for_those_of_another(serve: Serve) -> None:
    _, client = await serve(WaitingAgent(run_id_event), caller_limits=IdentityLimits(sockets=2), limit_by="session")
    sockets = [await connect_socket(client, "first") for _ in range(2)]
    refused = await refused_handshake(client.url, additional_headers={SESSION_HEADER: "first"})
    assert refused.status == 429
    assert refused.event["message"] == (
        "You have reached the limit of 2 open sockets for one identity (AGUI_CALLER_LIMITS, sockets)."
    )
    other = await connect_socket(client, "second")
    await send(other, ask())
    assert frame_names(await receive(other, 2)) == ["RUN_STARTED r1", "CUSTOM r1"]
    await sockets[0].close()
    await connect_socket(client, "first")


@requirement("caller.streams")
async def test_a_get_that_is_no_handshake_tells_why_a_handshake_is_refused(serve: Serve) -> None:
    _, client = await serve(forever, caller_limits=IdentityLimits(sockets=1), limit_by="session")
    async with httpx.AsyncClient(base_url=client.url, headers={SESSION_HEADER: "first"}, timeout=WAIT) as http:
        response = await http.get("/ws")
        assert (response.status_code, response.headers["upgrade"]) == (426, "websocket")
        socket = await connect_socket(client, "first")
        response = await http.get("/ws")
        assert response.status_code == 429
        assert refusal_event(response)["code"] == "RATE_LIMIT_EXCEEDED"
        await socket.send('{"type":"ping"}')
        assert await socket.recv() == '{"control": "pong"}'


@requirement("caller.messages")
async def test_a_caller_that_sends_too_many_messages_is_told_and_another_is_served(serve: Serve) -> None:
    _, client = await serve(
        WaitingAgent(run_id_event), caller_limits=IdentityLimits(messages_per_second=3), limit_by="session"
    )
    first, again, other = [await connect_socket(client, session) for session in ("first", "first", "second")]
    await send(first, *({"type": "ping", "id": number} for number in range(1, 4)))
    assert frame_names(await receive(first, 3)) == ["pong 1", "pong 2", "pong 3"]
    for socket in (first, again):
        await send(socket, *({"type": "ping", "id": number} for number in range(4, 9)))
        (error,) = await receive(socket, 1)
        assert (error["code"], error["retryable"], error["retryAfter"]) == ("RATE_LIMIT_EXCEEDED", True, 1)
        assert "AGUI_CALLER_LIMITS, messagesPerSecond" in error["message"]
    await send(other, {"type": "ping", "id": 1})
    assert frame_names(await receive(other, 1)) == ["pong 1"]


@requirement("caller.messages")
async def test_messages_above_the_limit_are_not_even_parsed(serve: Serve) -> None:
    _, client = await serve(
        WaitingAgent(run_id_event), caller_limits=IdentityLimits(messages_per_second=1), limit_by="session"
    )
    socket = await connect_socket(client, "first")
    await send(socket, {"type": "ping", "id": 1})
    assert frame_names(await receive(socket, 1)) == ["pong 1"]
    await send(socket, "{")
    assert frame_names(await receive(socket, 1)) == ["error RATE_LIMIT_EXCEEDED"]
    client.clock.advance(1)
    await send(socket, {"type": "ping", "id": 2})
    assert frame_names(await receive(socket, 1)) == ["pong 2"]


@requirement("caller.rate")
async def test_a_refusal_over_http_says_when_to_come_back(serve: Serve) -> None:
    limits = IdentityLimits(runs_per_minute=2)
    client, _ = await serve(forever, caller_limits=limits, limit_by="session", on_busy="enqueue", error_status="stream")
    for _ in range(2):
        await start(client.url, "one")
    async with http_client(client.url) as http, asyncio.timeout(WAIT):
        response = await http.post("/invocations", json=ask(run="r3"), headers={SESSION_HEADER: "one"})
    assert (response.status_code, response.headers["retry-after"]) == (200, "30")
    assert '"retryAfter":30' in response.text


@requirement("caller.identity")
def test_a_principal_is_an_identity_wherever_it_comes_from() -> None:
    anonymous = Caller("session:s", "request")
    assert anonymous.identity == ""
    verified = replace(anonymous, owner="principal", principal=Principal("https://issuer", "somebody", 0.0))
    assert verified.identity == "principal"
