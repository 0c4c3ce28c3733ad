"""Requests at the door: the caller, the headers an agent sees, and web pages that are refused."""

import base64
from collections.abc import Mapping

import httpx
import pytest
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Message

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.web.caller_middleware import agent_headers, protocol_token
from agui_container.web.error_responses import send_refusal
from tests.conftest import Serve
from tests.engine.doubles import forever
from tests.secret_search import planted
from tests.sse import http_client


async def post(url: str, headers: dict[str, str]) -> httpx.Response:
    async with http_client(url) as http:
        return await http.post("/invocations", json={"command": {"type": "ping"}}, headers=headers)


@pytest.mark.parametrize(("origin", "allowed"), [("http://one.example", True), ("http://evil.example", False)])
async def test_a_preflight_is_answered_for_configured_pages_only(serve: Serve, origin: str, *, allowed: bool) -> None:
    client, _ = await serve(forever, cors_origins="http://one.example")
    asking = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    async with http_client(client.url) as http:
        response = await http.options("/invocations", headers=asking)
    assert (response.status_code == 200) == allowed
    assert (response.headers.get("access-control-allow-origin") == origin) == allowed


async def test_a_session_id_that_is_too_long_is_refused(serve: Serve) -> None:
    client, _ = await serve(forever)
    for length, status in ((256, 200), (257, 400)):
        header = {"x-amzn-bedrock-agentcore-runtime-session-id": "s" * length}
        assert (await post(client.url, header)).status_code == status


async def test_a_server_without_responses_to_handshakes_refuses_a_socket_with_its_close_code() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    error = AppError(ErrorCode.UNAUTHORIZED, "No.")
    await send_refusal(error, Response(), {"type": "websocket"}, never, send)
    assert sent == [{"type": "websocket.close", "code": 1008, "reason": "UNAUTHORIZED"}]


async def never() -> Message:
    raise AssertionError("a refusal reads nothing")


async def test_several_session_ids_are_refused(serve: Serve) -> None:
    client, _ = await serve(forever)
    header = "x-amzn-bedrock-agentcore-runtime-session-id"
    async with http_client(client.url) as http:
        answer = await http.get("/threads", headers=[(header, "mine"), (header, "yours")])
    assert answer.status_code == 400
    assert "may be sent once" in answer.text


def connection(kind: str, headers: dict[str, str], **more: object) -> HTTPConnection:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return HTTPConnection({"type": kind, "headers": raw, "query_string": b"", **more})


def headers_for_agent(asking: HTTPConnection) -> Mapping[str, str]:
    return agent_headers(asking.scope, asking.headers.items())


HIDDEN = (
    *("cookie", "host", "origin", "user-agent", "content-length", "accept", "connection", "upgrade", "te"),
    *("sec-websocket-key", "x-forwarded-for", "forwarded", "proxy-authorization"),
)
SHOWN = (
    *("authorization", "traceparent", "baggage", "x-amzn-trace-id", "oauth2callbackurl", "workloadaccesstoken"),
    *("x-amzn-bedrock-agentcore-runtime-custom-tenant", "x-api-key"),
)


def test_headers_are_forwarded_but_cookies_and_those_of_the_transport() -> None:
    assert headers_for_agent(connection("http", dict.fromkeys(HIDDEN + SHOWN, "x"))) == dict.fromkeys(SHOWN, "x")


def test_a_sockets_headers_may_come_in_its_query() -> None:
    query = b"X-Amzn-Bedrock-AgentCore-Runtime-Session-Id=s1&other=1&x-amzn-bedrock-agentcore-runtime-custom-a=%41"
    socket = connection("websocket", {}, query_string=query)
    assert headers_for_agent(socket) == {
        "x-amzn-bedrock-agentcore-runtime-session-id": "s1",
        "x-amzn-bedrock-agentcore-runtime-custom-a": "A",
    }


def test_a_header_comes_before_the_query_and_requests_have_none() -> None:
    name = "x-amzn-bedrock-agentcore-runtime-session-id"
    query = f"{name}=query".encode()
    assert headers_for_agent(connection("websocket", {name: "header"}, query_string=query)) == {name: "header"}
    assert headers_for_agent(connection("http", {}, query_string=query)) == {}


def websocket_with_protocols(*protocols: str) -> HTTPConnection:
    return connection("websocket", {}, subprotocols=list(protocols))


@pytest.mark.parametrize("token", ["abc", planted("socket-token"), "a.b-c_d/e+f~", "\N{GRINNING FACE}"])
def test_a_token_is_decoded_with_or_without_padding(token: str) -> None:
    encoded = base64.urlsafe_b64encode(token.encode()).decode()
    for form in (encoded, encoded.rstrip("=")):
        socket = websocket_with_protocols("base64UrlBearerAuthorization", f"base64UrlBearerAuthorization.{form}")
        assert protocol_token(socket.scope) == token
        assert headers_for_agent(socket)["authorization"] == f"Bearer {token}"


@pytest.mark.parametrize(
    "protocol",
    [
        "other.YWJj",
        "base64UrlBearerAuthorization",
        *map("base64UrlBearerAuthorization.{}".format, ("", "a", "_w", "é")),
    ],
)
def test_other_protocols_and_those_that_cannot_be_decoded_hold_no_token(protocol: str) -> None:
    assert protocol_token(websocket_with_protocols(protocol).scope) is None
