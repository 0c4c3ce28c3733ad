"""Inbound authorization: signatures as AWS's clients make them, tokens, and pages of other machines."""

import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
from botocore.credentials import Credentials  # type: ignore[import-untyped]
from starlette.websockets import WebSocket
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from agui_container.aws.platform.authorizer import InboundCall, JwtAuthorizer, SigV4Authorizer
from agui_container.aws.platform.errors import PlatformRefusal
from agui_container.settings import Settings
from tests.auth.issuer import TestIssuer
from tests.aws.platform.conftest import AttachPlatform
from tests.aws.platform.doubles import HEADER, INVOCATIONS, RUNTIME, SESSION, ScriptedContainer, ServedPlatform, events
from tests.behaviour.server import listening
from tests.secret_search import planted
from tests.websocket import socket_to

pytestmark = pytest.mark.wire

KEY = Credentials("AKIDTEST", planted("aws"))
SIGNED = SigV4Authorizer(KEY.access_key, KEY.secret_key)


def sign(url: str, body: bytes = b"{}", key: Credentials = KEY, service: str = "bedrock-agentcore") -> dict[str, str]:
    headers = {HEADER: SESSION, "Content-Type": "application/json"}
    request = AWSRequest("POST", url, headers, body)
    SigV4Auth(key, service, "us-east-1").add_auth(request)
    return dict(request.headers)


async def test_a_signed_request_is_admitted(attach: AttachPlatform) -> None:
    site = await attach(authorizer=SIGNED)
    url = f"{site.url}{INVOCATIONS}?qualifier=DEFAULT&accountId=123456789012"
    answered = await site.http.post(url, content=b"{}", headers=sign(url))
    assert events(answered)[-1]["type"] == "RUN_FINISHED"


async def refusal(site: ServedPlatform, body: bytes, headers: dict[str, str]) -> str:
    answered = await site.http.post(f"{site.url}{INVOCATIONS}", content=body, headers=headers)
    assert (answered.status_code, events(answered)[0]["code"]) == (403, "ACCESS_DENIED")
    return str(events(answered)[0]["message"])


async def test_requests_that_are_not_signed_or_signed_otherwise_are_refused(attach: AttachPlatform) -> None:
    site = await attach(authorizer=SIGNED)
    url = f"{site.url}{INVOCATIONS}"
    good = sign(url)
    assert "Missing" in await refusal(site, b"{}", {HEADER: SESSION})
    assert "does not match" in await refusal(site, b"[]", good)
    assert "does not match" in await refusal(site, b"{}", {**good, "Content-Type": "text/plain"})
    assert "does not match" in await refusal(site, b"{}", sign(url, key=Credentials("AKIDTEST", "another")))
    assert "invalid" in await refusal(site, b"{}", sign(url, key=Credentials("ANOTHER", "another")))
    assert "does not match" in await refusal(site, b"{}", sign(url, service="bedrock"))
    assert not site.containers


@pytest.mark.parametrize("minutes", [-6, 6])
async def test_an_old_signature_and_one_from_the_future_are_refused(
    attach: AttachPlatform, monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    site = await attach(authorizer=SIGNED)
    then = datetime.now(UTC) + timedelta(minutes=minutes)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: then)
    assert "expired" in await refusal(site, b"{}", sign(f"{site.url}{INVOCATIONS}"))


NODE_SIGNATURE = (
    "AWS4-HMAC-SHA256 Credential=AKIDTEST/20261128/us-east-1/bedrock-agentcore/aws4_request, SignedHeaders="
    "accept;amz-sdk-invocation-id;amz-sdk-request;content-length;content-type;host;x-amz-content-sha256;x-amz-date;"
    "x-amz-user-agent;x-amzn-bedrock-agentcore-runtime-session-id, "
    "Signature=7361c7f17ccd65882da46cb449d6cf7a7a3223049150106fdc0ccabacb098119"
)
"""Of @aws-sdk/client-bedrock-agentcore 3.1141 with the secret key ``local``."""

NODE_REQUEST = InboundCall(
    "POST",
    "/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aus-east-1%3A123456789012%3Aruntime%2Flocal/invocations",
    "",
    {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "x-amzn-bedrock-agentcore-runtime-session-id": "session-of-a-test-with-enough-characters",
        "content-length": "33",
        "x-amz-user-agent": "aws-sdk-js/3.1140.0",
        "user-agent": "aws-sdk-js/3.1140.0 ua/2.1",
        "host": "127.0.0.1:8123",
        "amz-sdk-invocation-id": "f91bdad7-eeae-4f7b-8d8d-08cb9110c250",
        "amz-sdk-request": "attempt=1; max=3",
        "x-amz-date": "20261128T221048Z",
        "x-amz-content-sha256": "166369285e99d8c2d4a2fbefd1b26715d45e3af0519e024e8b3c9d5af2640858",
        "authorization": NODE_SIGNATURE,
    },
    b'{"threadId": "t1", "runId": "r1"}',
)


async def test_a_request_that_awss_sdk_for_node_has_signed_is_admitted_and_a_changed_one_is_not() -> None:
    signed_at = datetime(2026, 11, 28, 22, 10, 48, tzinfo=UTC).timestamp()
    authorizer = SigV4Authorizer("AKIDTEST", "local", lambda: signed_at)
    await authorizer.authorize(NODE_REQUEST)
    headers = NODE_REQUEST.headers
    for changed in (
        replace(NODE_REQUEST, body=b'{"threadId": "t1", "runId": "r2"}'),
        replace(NODE_REQUEST, headers={**headers, "x-amz-content-sha256": "UNSIGNED-PAYLOAD"}),
        replace(NODE_REQUEST, headers={**headers, "amz-sdk-request": "attempt=2; max=3"}),
    ):
        with pytest.raises(PlatformRefusal, match="does not match"):
            await authorizer.authorize(changed)


async def echo(websocket: WebSocket) -> None:
    await websocket.send_text(await websocket.receive_text())
    await websocket.close()


async def exchange(url: str, *protocols: str) -> tuple[str, str | None]:
    """Open a socket with these subprotocols and send one message; gives the answer and the subprotocol."""
    offered = [Subprotocol(protocol) for protocol in protocols] or None
    async with socket_to(url, "", subprotocols=offered) as connection:
        await connection.send('{"control": "pong"}')
        return str(await connection.recv()), connection.subprotocol


def presigned(site: ServedPlatform, expires: int = 300) -> str:
    """A presigned address of the socket, as AWS's SDK for AgentCore makes it."""
    request = AWSRequest("GET", f"{site.url}{RUNTIME}/ws", params={HEADER: SESSION, "qualifier": "DEFAULT"})
    SigV4QueryAuth(KEY, "bedrock-agentcore", "us-east-1", expires=expires).add_auth(request)
    return f"{site.url.replace('http', 'ws', 1)}{RUNTIME}/ws?{urlsplit(request.url).query}"


async def test_a_presigned_socket_is_admitted_and_a_changed_one_is_not(attach: AttachPlatform) -> None:
    site = await attach(ScriptedContainer(talk=echo), authorizer=SIGNED)
    url = presigned(site)
    assert await exchange(url) == ('{"control": "pong"}', None)
    for changed in (url.replace("qualifier=DEFAULT", "qualifier=other"), url.partition("&X-Amz-Signature")[0]):
        with pytest.raises(InvalidStatus) as refused:
            await exchange(changed)
        assert refused.value.response.status_code == 403
        assert b"ACCESS_DENIED" in (refused.value.response.body or b"")


@pytest.fixture
async def issuer() -> AsyncIterator[TestIssuer]:
    issuer = TestIssuer()
    async with listening(issuer.scripted_app()) as url:
        issuer.url = url
        yield issuer


def authorizer(issuer: TestIssuer) -> JwtAuthorizer:
    rules = {"auth_allowed_audience": ("my-agent",), "auth_allowed_scopes": ("run",)}
    return JwtAuthorizer(Settings(auth="jwt", auth_discovery_url=issuer.discovery_url, **rules))


async def test_a_token_is_verified_and_passed_on_only_if_it_is_allowed(
    attach: AttachPlatform, issuer: TestIssuer
) -> None:
    token = issuer.token("alice", aud="my-agent", scope="run")
    for allowed in (frozenset[str](), frozenset({"authorization"})):
        container = ScriptedContainer()
        site = await attach(container, authorizer=authorizer(issuer), allowed_headers=allowed)
        answered = await site.invoke(authorization=f"Bearer {token}")
        assert events(answered)[-1]["type"] == "RUN_FINISHED"
        [seen] = container.requests
        assert ("authorization" in seen) == bool(allowed)
        assert seen["workloadaccesstoken"]


async def test_a_caller_without_a_token_or_without_its_scope_is_refused(
    attach: AttachPlatform, issuer: TestIssuer
) -> None:
    site = await attach(authorizer=authorizer(issuer))
    other = issuer.token("alice", aud="my-agent", scope="look")
    for sent, status, code in (("", 401, "UNAUTHORIZED"), (f"Bearer {other}", 403, "ACCESS_DENIED")):
        refused = await site.invoke(authorization=sent)
        assert (refused.status_code, events(refused)[0]["code"]) == (status, code)
    assert not site.containers


async def test_a_browser_sends_its_token_as_a_subprotocol(attach: AttachPlatform, issuer: TestIssuer) -> None:
    site = await attach(ScriptedContainer(talk=echo), authorizer=authorizer(issuer))
    token = issuer.token("alice", aud="my-agent", scope="run")
    encoded = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
    name = "base64UrlBearerAuthorization"
    assert await exchange(site.socket_url, f"{name}.{encoded}", name) == ('{"control": "pong"}', name)
    with pytest.raises(InvalidStatus) as refused:
        await exchange(site.socket_url, f"{name}.no-token", name)
    assert refused.value.response.status_code == 401


async def test_a_page_of_another_machine_may_not_call_without_credentials(attach: AttachPlatform) -> None:
    site = await attach()
    refused = await site.invoke(origin="https://evil.example")
    assert (refused.status_code, events(refused)[0]["code"]) == (403, "ACCESS_DENIED")
    assert (await site.invoke(origin="http://localhost:5173")).status_code == 200
