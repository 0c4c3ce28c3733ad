"""The documents and keys of an issuer: what verifies a token, what is skipped, and documents that cannot be read."""

from collections.abc import Mapping, Sequence

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from jwt import PyJWK
from jwt.algorithms import OKPAlgorithm, RSAAlgorithm
from starlette.responses import Response

from agui_container.auth import tokens
from agui_container.auth.tokens import IssuerClient, IssuerFailure, check_safe, fetch_endpoints
from agui_container.protocol.errors import AppError, ErrorCode
from tests.auth.conftest import Guarded
from tests.auth.issuer import AUDIENCE, TestIssuer
from tests.auth.test_tokens import SERVED, check
from tests.engine.doubles import START, FakeClock, Json
from tests.secret_search import remember_token

pytestmark = pytest.mark.wire

RSA_2048 = generate_private_key(65537, 2048)


def rsa(**members: object) -> Json:
    return {**RSAAlgorithm.to_jwk(RSA_2048.public_key(), as_dict=True), "kid": "k", **members}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine has time to read the documents."""
    monkeypatch.setattr(tokens, "FETCH_SECONDS", 60.0)


async def find_keys(issuer: TestIssuer, *keys: Json) -> Sequence[PyJWK]:
    issuer.publish(*keys)
    return (await IssuerClient(issuer.discovery_url, FakeClock().time).find(None)).keys


async def failure(url: str) -> str:
    with pytest.raises(IssuerFailure) as failed:
        await fetch_endpoints(url)
    return str(failed.value)


@pytest.mark.parametrize(
    "key",
    [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "k", "alg": "HS256"},
        {**RSAAlgorithm.to_jwk(RSA_2048, as_dict=True), "kid": "k"},
        rsa(alg="HS256"),
        rsa(use="enc"),
        rsa(n="AQAB"),
        rsa(n="!"),
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "k"},
        {},
        None,
    ],
)
async def test_a_key_that_cannot_be_used_is_skipped(issuer: TestIssuer, key: Json) -> None:
    assert [used.key_id for used in await find_keys(issuer, key, rsa(kid="good", alg="RS256"))] == ["good"]
    with pytest.raises(AppError):
        await find_keys(issuer, key)


DISCOVERY = "/.well-known/openid-configuration"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[", f"ISSUER{DISCOVERY} is not JSON"),
        (b"[]", f"ISSUER{DISCOVERY} is not a JSON object"),
        (b"[" * 100_000, f"ISSUER{DISCOVERY} is not JSON"),
        (b"{}", "the discovery document has no authorization_endpoint"),
        (b'{"authorization_endpoint": 5}', "the discovery document has no authorization_endpoint"),
        (
            b'{"authorization_endpoint": "http://169.254.169.254/x", "token_endpoint": "https://i"}',
            "http://169.254.169.254/x is neither https nor on the machine of both the issuer and this server",
        ),
    ],
)
async def test_a_discovery_document_that_cannot_be_used_is_a_failure(
    issuer: TestIssuer, content: bytes, message: str
) -> None:
    issuer.answers[DISCOVERY] = Response(content)
    assert (await failure(issuer.discovery_url)).replace(issuer.url, "ISSUER") == message


@pytest.mark.parametrize("members", [{"issuer": 5}, {"jwks_uri": ""}, {"jwks_uri": "http://169.254.169.254/x"}])
async def test_keys_of_a_malformed_discovery_document_are_not_used(
    issuer: TestIssuer, members: dict[str, object]
) -> None:
    issuer.tell(**members)
    with pytest.raises(AppError) as refused:
        await find_keys(issuer, rsa())
    assert refused.value.code is ErrorCode.AUTH_UNAVAILABLE
    assert "/keys" not in issuer.asked


async def test_an_issuer_that_does_not_answer_in_time_is_a_failure(
    issuer: TestIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "FETCH_SECONDS", 0.1)
    issuer.is_awake.clear()
    assert (await failure(issuer.discovery_url)).startswith(("no answer within 0.1 s", "ReadTimeout"))


@pytest.mark.parametrize("url", ["http://127.0.0.1:9000/x", "http://localhost/x", "https://[::1]/x"])
def test_a_remote_issuer_cannot_name_keys_on_this_machine(url: str) -> None:
    with pytest.raises(IssuerFailure, match="is neither https nor on the machine of both"):
        check_safe(url, "https://issuer.example/x")
    check_safe("https://keys.example/x", "https://issuer.example/x")


ED25519, OTHER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()


def okp(key: Ed25519PrivateKey, **members: object) -> Json:
    return {**OKPAlgorithm.to_jwk(key.public_key(), as_dict=True), **members}


def signed(guarded: Guarded, key: Ed25519PrivateKey, **header: str) -> str:
    claims = {"iss": guarded.issuer.url, "sub": "alice", "aud": AUDIENCE, "exp": START + 60}
    return remember_token(jwt.encode(claims, key, "EdDSA", dict(header)))


KEYS: dict[str, tuple[Sequence[Json], Mapping[str, str]]] = {
    "neither has an id": ([okp(OTHER), okp(ED25519)], {}),
    "the token has no id": ([okp(OTHER, kid="a"), okp(ED25519, kid="b")], {}),
    "the keys have no id": ([okp(OTHER), okp(ED25519)], {"kid": "b"}),
    "two keys have one id": ([okp(OTHER, kid="b"), okp(ED25519, kid="b")], {"kid": "b"}),
}


@pytest.mark.parametrize(("keys", "header"), KEYS.values(), ids=KEYS)
async def test_a_token_is_verified_with_each_key_that_fits(
    guarded: Guarded, keys: Sequence[Json], header: Mapping[str, str]
) -> None:
    guarded.issuer.publish(*keys)
    check(await guarded.ask("sse", signed(guarded, ED25519, **header)), "sse", "", SERVED)
    reply = await guarded.ask("sse", signed(guarded, Ed25519PrivateKey.generate(), **header))
    assert reply.code == "UNAUTHORIZED"


async def test_a_token_that_names_another_key_is_not_verified(guarded: Guarded) -> None:
    guarded.issuer.publish(okp(ED25519, kid="a"))
    reply = await guarded.ask("sse", signed(guarded, ED25519, kid="b"))
    assert (reply.code, reply.message) == ("UNAUTHORIZED", "The token is signed with an unknown key.")
