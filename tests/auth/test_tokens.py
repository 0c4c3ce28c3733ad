"""Tokens on every transport: those that are taken and refused, tokens that expire, and the metadata."""

import base64
import hmac
import json
from collections.abc import Mapping

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from websockets.exceptions import ConnectionClosed

from agui_container.auth.claim_rules import SKEW_SECONDS
from tests.auth.clients import RequestResult, over_sse, question
from tests.auth.conftest import Guard, Guarded, authorization
from tests.auth.issuer import AUDIENCE, TestIssuer
from tests.engine.doubles import START
from tests.server.sockets.client import is_text
from tests.sse import http_client
from tests.websocket import receive_frame, receive_until, refused_handshake, send, socket_to

pytestmark = pytest.mark.wire

Statuses = Mapping[str, int]

SERVED: Statuses = {"sse": 200, "ws": 200}
UNAUTHORIZED: Statuses = {"sse": 401, "ws": 401}
DENIED: Statuses = {"sse": 403, "ws": 403}


def check(reply: RequestResult, transport: str, code: str, statuses: Statuses) -> None:
    assert (reply.code, reply.status) == (code, statuses[transport])


async def test_without_a_token_the_challenge_leads_to_the_metadata(guarded: Guarded, transport: str) -> None:
    reply = await guarded.ask(transport, None)
    check(reply, transport, "UNAUTHORIZED", UNAUTHORIZED)
    assert reply.message == "A bearer token is required."
    assert reply.challenge == f'Bearer resource_metadata="{guarded.url}/.well-known/oauth-protected-resource"'


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"iss": "http://other.example"}, "The token is of another issuer."),
        ({"aud": "another"}, "The token is for another audience (aud)."),
        ({"aud": None}, "The token is for another audience (aud)."),
        ({"exp": START - SKEW_SECONDS}, "The token has expired."),
        ({"exp": None}, "The token has no time of expiry (exp)."),
        ({"nbf": START + SKEW_SECONDS + 1}, "The token is not valid yet (nbf)."),
        ({"sub": None}, "The token names no subject (sub)."),
    ],
)
async def test_a_token_that_does_not_meet_the_rules_is_refused(
    guarded: Guarded, transport: str, claims: dict[str, object], message: str
) -> None:
    reply = await guarded.ask(transport, guarded.token(**claims))
    check(reply, transport, "UNAUTHORIZED", UNAUTHORIZED)
    assert reply.message == message


async def test_clocks_may_differ_by_a_minute(guarded: Guarded, transport: str) -> None:
    token = guarded.token(exp=int(START) - 59, nbf=int(START) + 59)
    check(await guarded.ask(transport, token), transport, "", SERVED)


def segment(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def with_secret(claims: Mapping[str, object], secret: bytes, key_id: str) -> str:
    """A token with a symmetric signature. PyJWT itself refuses to take a public key as the secret."""
    header = {"alg": "HS256", "kid": key_id}
    signed = ".".join(segment(json.dumps(part).encode()) for part in (header, claims))
    return f"{signed}.{segment(hmac.digest(secret, signed.encode(), 'sha256'))}"


def forged(guarded: Guarded) -> dict[str, str]:
    claims = {"iss": guarded.issuer.url, "sub": "alice", "aud": AUDIENCE, "exp": START + 60}
    key_id = jwt.get_unverified_header(guarded.token())["kid"]
    key_set = guarded.issuer.key_set()["keys"]
    assert isinstance(key_set, list)
    public = json.dumps(key_set[0]).encode()
    header, payload, signature = guarded.token().split(".")
    changed = segment(json.dumps({**claims, "sub": "root"}).encode())
    return {
        "signed by another key": jwt.encode(claims, generate_private_key(65537, 2048), "RS256", {"kid": key_id}),
        "signed with the public key as a secret": with_secret(claims, public, key_id),
        "not signed": jwt.encode(claims, "", "none", {"kid": key_id}),
        "with other claims": f"{header}.{changed}.{signature}",
        "without its signature": f"{header}.{payload}.",
        "with an unknown key": jwt.encode(claims, generate_private_key(65537, 2048), "RS256", {"kid": "unknown"}),
        "no token at all": "abc",
        "empty": "..",
        "of one segment": header,
        "with a deep header": f"{segment(b'[' * 3000)}.{payload}.{signature}",
        "with an extension that must be understood": jwt.encode(
            claims, generate_private_key(65537, 2048), "RS256", {"kid": key_id, "crit": ["exp"], "exp": 1}
        ),
    }


async def test_a_token_that_the_issuer_has_not_signed_is_refused(guarded: Guarded, transport: str) -> None:
    for token in forged(guarded).values():
        check(await guarded.ask(transport, token), transport, "UNAUTHORIZED", UNAUTHORIZED)


async def test_a_token_of_more_than_16_000_characters_is_refused(guarded: Guarded) -> None:
    reply = await guarded.ask("sse", guarded.token(extra="x" * 16_000))
    assert (reply.code, reply.message) == ("UNAUTHORIZED", "The token has more than 16000 characters.")


async def test_a_token_without_a_scope_is_denied_without_a_challenge(guard: Guard, transport: str) -> None:
    guarded = await guard(auth_allowed_scopes="agent.run,agent.admin")
    reply = await guarded.ask(transport, guarded.token(scope="profile email"))
    check(reply, transport, "ACCESS_DENIED", DENIED)
    assert reply.challenge is None
    check(await guarded.ask(transport, guarded.token(scope="profile agent.run")), transport, "", SERVED)


async def test_behind_agentcore_a_refused_invocation_is_a_200_with_the_error(guard: Guard) -> None:
    guarded = await guard(error_status="stream")
    reply = await over_sse(guarded.url, {})
    assert (reply.code, reply.status) == ("UNAUTHORIZED", 200)
    assert (await guarded.get("/runs")).status_code == 401


def subprotocols(token: str) -> list[str]:
    return [f"base64UrlBearerAuthorization.{segment(token.encode())}", "base64UrlBearerAuthorization"]


async def test_a_browsers_socket_sends_its_token_as_a_subprotocol(guarded: Guarded) -> None:
    async with socket_to(guarded.url, subprotocols=subprotocols(guarded.token())) as socket:
        await send(socket, {"type": "ping"})
        assert await receive_frame(socket) == {"control": "pong"}
    refused = await refused_handshake(guarded.url, subprotocols=subprotocols(guarded.token(aud="x")))
    assert refused.status == 401


async def test_a_message_after_the_expiry_is_refused_and_ends_the_socket(guarded: Guarded) -> None:
    async with socket_to(guarded.url, additional_headers=authorization(guarded.token())) as socket:
        await send(socket, {"type": "ping"})
        assert await receive_frame(socket) == {"control": "pong"}
        guarded.clock.advance(3600 + SKEW_SECONDS)
        await send(socket, {"type": "ping"})
        error = await receive_frame(socket)
        assert (error["control"], error["code"], error["message"]) == (
            *("error", "UNAUTHORIZED"),
            "The token has expired.",
        )
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "UNAUTHORIZED")


async def test_a_run_that_its_socket_leaves_at_the_expiry_is_read_on_with_a_new_token(guard: Guard) -> None:
    guarded = await guard(run_timeout=100_000)
    asked = {**question(), "messages": [{"id": "m", "role": "user", "content": "wait 600"}]}
    async with socket_to(guarded.url, additional_headers=authorization(guarded.token())) as socket:
        await send(socket, asked)
        await receive_until(socket, is_text)
        guarded.clock.advance(3600 - 300)
        token = guarded.token()
        guarded.clock.advance(300 + SKEW_SECONDS)
        await send(socket, {"type": "ping"})
        assert (await receive_frame(socket))["code"] == "UNAUTHORIZED"
        with pytest.raises(ConnectionClosed):
            await socket.recv()
    run = await guarded.get(f"/runs/{asked['runId']}", token)
    assert run.json()["status"] == "running"
    async with http_client(guarded.url, authorization(token)) as http:
        await http.post(f"/runs/{asked['runId']}/cancel")


async def test_the_metadata_name_the_issuer_and_the_scopes(guard: Guard, issuer: TestIssuer) -> None:
    guarded = await guard(auth_allowed_scopes="agent.run")
    document = (await guarded.get("/.well-known/oauth-protected-resource")).json()
    assert document == {
        "resource": guarded.url,
        "authorization_servers": [issuer.url],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["agent.run"],
    }
    assert issuer.asked == []
