"""Accounts of callers: the network address, unless a gateway sets the session header."""

import asyncio
from dataclasses import replace
from itertools import count

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from agui_container.engine.policy import CallerLimits
from agui_container.ports import Caller
from agui_container.ports.auth import Principal
from agui_container.transports.accounts import Accounts, network_of
from agui_container.transports.caller_middleware import SESSION_HEADER
from tests.behaviour.over_sse import http_client, parse_frame
from tests.behaviour.over_ws import OverWs
from tests.conftest import Serve
from tests.engine.doubles import WAIT, ask, forever
from tests.requirements import requirement
from tests.transports.sockets import frame_names, open_socket, receive, send
from tests.waiting_agent import WaitingAgent, run_id_event

OTHER_ADDRESS = "127.0.0.2"
RUNS = count()


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
    ],
)
def test_one_client_has_one_name_whatever_addresses_it_has(address: str, network: str) -> None:
    assert network_of(address) == network


def test_a_session_is_a_name_only_where_a_gateway_sets_it() -> None:
    assert Accounts().name("192.0.2.7", "s") == Accounts().name("192.0.2.7", None) == "address:192.0.2.7"
    assert Accounts(by_session=True).name("192.0.2.7", "s") == "session:s"
    assert Accounts(by_session=True).name("192.0.2.7", None) == "address:192.0.2.7"
    assert Accounts().name(None, None) == "address:local"


async def start(url: str, session: str, address: str = "127.0.0.1", **headers: str) -> int:
    """Start a run of a session from an address, and disconnect. Return the status."""
    transport = httpx.AsyncHTTPTransport(local_address=address)
    given = {SESSION_HEADER: session, **{name.replace("_", "-"): value for name, value in headers.items()}}
    async with httpx.AsyncClient(transport=transport, base_url=url, timeout=WAIT) as http:
        request = http.build_request("POST", "/invocations", json=ask(run=f"run {next(RUNS)}"), headers=given)
        response = await http.send(request, stream=True)
        await response.aclose()
        return response.status_code


@requirement("caller.account")
@pytest.mark.parametrize("scope", ["session", "none"])
async def test_an_invented_session_is_no_fresh_allowance(serve: Serve, scope: str) -> None:
    client, _ = await serve(forever, caller_limits=CallerLimits(runs_per_minute=2), scope=scope, on_busy="enqueue")
    assert [await start(client.url, session) for session in ("one", "two", "three")] == [200, 200, 429]
    assert await start(client.url, "four", x_forwarded_for="192.0.2.7") == 429
    assert await start(client.url, "one", OTHER_ADDRESS) == 200


@requirement("caller.account")
async def test_sessions_that_a_gateway_names_have_an_allowance_each(serve: Serve) -> None:
    limits = CallerLimits(runs_per_minute=1)
    client, _ = await serve(forever, caller_limits=limits, limit_by="session", scope="none", on_busy="enqueue")
    assert [await start(client.url, session) for session in ("one", "one", "two")] == [200, 429, 200]


# --- sockets ---


async def connect_socket(client: OverWs, session: str) -> ClientConnection:
    url = client.url.replace("http", "ws") + "/ws"
    socket = await connect(url, additional_headers={SESSION_HEADER: session}, proxy=None)
    client.connections.append(socket)
    return socket


@requirement("caller.streams")
async def test_sockets_of_one_caller_leave_room_for_those_of_another(serve: Serve) -> None:
    _, client = await serve(WaitingAgent(run_id_event), caller_limits=CallerLimits(sockets=2), limit_by="session")
    sockets = [await connect_socket(client, "first") for _ in range(2)]
    with pytest.raises(InvalidStatus) as refused:
        await connect_socket(client, "first")
    assert refused.value.response.status_code == 429
    body = parse_frame(bytes(refused.value.response.body).removesuffix(b"\n\n"))[1]
    assert (
        body["message"] == "You have reached the limit of 2 open sockets for one caller (AGUI_CALLER_LIMITS, sockets)."
    )
    other = await connect_socket(client, "second")
    await send(other, ask())
    assert frame_names(await receive(other, 2)) == ["RUN_STARTED r1", "CUSTOM r1"]
    await sockets[0].close()
    await connect_socket(client, "first")


@requirement("caller.streams")
async def test_a_get_that_is_no_handshake_tells_why_a_handshake_is_refused(serve: Serve) -> None:
    _, client = await serve(forever, caller_limits=CallerLimits(sockets=1), limit_by="session")
    async with httpx.AsyncClient(base_url=client.url, headers={SESSION_HEADER: "first"}, timeout=WAIT) as http:
        response = await http.get("/ws")
        assert (response.status_code, response.headers["upgrade"]) == (426, "websocket")
        socket = await connect_socket(client, "first")
        response = await http.get("/ws")
        assert response.status_code == 429
        assert parse_frame(response.content.removesuffix(b"\n\n"))[1]["code"] == "RATE_LIMIT_EXCEEDED"
        await socket.send('{"type":"ping"}')
        assert await socket.recv() == '{"control": "pong"}'


@requirement("caller.messages")
async def test_a_caller_that_sends_too_many_messages_is_told_and_another_is_served(serve: Serve) -> None:
    _, client = await serve(
        WaitingAgent(run_id_event), caller_limits=CallerLimits(messages_per_second=3), limit_by="session"
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
    _, client = await serve(WaitingAgent(run_id_event), caller_limits=CallerLimits(messages_per_second=1))
    socket = await open_socket(client)
    await send(socket, {"type": "ping", "id": 1})
    assert frame_names(await receive(socket, 1)) == ["pong 1"]
    await send(socket, "{")
    assert frame_names(await receive(socket, 1)) == ["error RATE_LIMIT_EXCEEDED"]
    client.clock.advance(1)
    await send(socket, {"type": "ping", "id": 2})
    assert frame_names(await receive(socket, 1)) == ["pong 2"]


@requirement("caller.rate")
async def test_a_refusal_over_http_says_when_to_come_back(serve: Serve) -> None:
    client, _ = await serve(forever, caller_limits=CallerLimits(runs_per_minute=2), error_status="stream")
    for session in ("one", "two"):
        await start(client.url, session)
    async with http_client(client.url) as http, asyncio.timeout(WAIT):
        response = await http.post("/invocations", json=ask(run="r3"))
    assert (response.status_code, response.headers["retry-after"]) == (200, "30")
    assert '"retryAfter":30' in response.text


def test_a_principal_is_counted_wherever_it_comes_from() -> None:
    anonymous = Caller("session:s", "request", account="address:192.0.2.7")
    assert anonymous.account == "address:192.0.2.7"
    assert (
        replace(anonymous, owner="principal", principal=Principal("https://issuer", "somebody", 0.0)).account
        == "principal"
    )
    assert Caller("session:s", "request").account == "session:s"
