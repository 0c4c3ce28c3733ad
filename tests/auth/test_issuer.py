"""The documents of an issuer: keys that are used and skipped, and documents that cannot be read."""

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from jwt.algorithms import OKPAlgorithm, RSAAlgorithm
from jwt.utils import base64url_encode
from starlette.responses import RedirectResponse, Response

from agui_container.auth import issuer as documents
from agui_container.auth.issuer import RSA_ALGORITHMS, IssuerClient, IssuerFailure, is_safe
from tests.auth.issuer import TestIssuer
from tests.engine.doubles import Json

RSA_2048 = generate_private_key(65537, 2048)


def rsa(**members: object) -> Json:
    return {**RSAAlgorithm.to_jwk(RSA_2048.public_key(), as_dict=True), "kid": "k", **members}


async def algorithms(issuer: TestIssuer, *keys: Json) -> list[str]:
    """The algorithms under which published keys are found."""
    issuer.publish(*keys)
    return [name for key in (await fetch_keys(issuer)).keys for name in key.algorithms]


async def fetch_keys(issuer: TestIssuer) -> documents.IssuerKeys:
    client = IssuerClient(issuer.discovery_url)
    try:
        return await client.fetch()
    finally:
        await client.aclose()


async def failure(issuer: TestIssuer) -> str:
    with pytest.raises(IssuerFailure) as failed:
        await fetch_keys(issuer)
    return str(failed.value).replace(issuer.url, "ISSUER")


# --- keys -------------------------------------------------------------------------------------------------------------


async def test_a_key_without_an_algorithm_is_good_for_those_of_its_type(issuer: TestIssuer) -> None:
    assert await algorithms(issuer, rsa()) == list(RSA_ALGORITHMS)


async def test_a_key_with_an_algorithm_is_good_for_that_one(issuer: TestIssuer) -> None:
    assert await algorithms(issuer, rsa(alg="PS256")) == ["PS256"]


async def test_a_key_of_ed25519_is_taken(issuer: TestIssuer) -> None:
    key = OKPAlgorithm.to_jwk(Ed25519PrivateKey.generate().public_key(), as_dict=True)
    assert await algorithms(issuer, {**key, "kid": "k"}) == ["EdDSA", "Ed25519"]


async def test_a_private_key_that_is_published_by_mistake_counts_as_its_public_one(issuer: TestIssuer) -> None:
    issuer.publish({**RSAAlgorithm.to_jwk(RSA_2048, as_dict=True), "kid": "k", "alg": "RS256"})
    key = (await fetch_keys(issuer)).keys[0].jwk.key
    assert not hasattr(key, "private_numbers")


@pytest.mark.parametrize(
    "key",
    [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "k", "alg": "HS256"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "k", "alg": "RS256"},
        rsa(alg="HS256"),
        rsa(alg="none"),
        rsa(alg="ES256"),
        rsa(use="enc"),
        rsa(n="AQAB"),
        rsa(n="!"),
        {"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA", "kid": "k"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "k"},
        {"kty": "OKP", "crv": "X25519", "x": "AA", "kid": "k"},
        {"kid": "k"},
        {},
        "key",
        None,
    ],
)
async def test_a_key_that_cannot_be_used_is_skipped(issuer: TestIssuer, key: Json) -> None:
    assert await algorithms(issuer, key, rsa(kid="good", alg="RS256")) == ["RS256"]
    assert await algorithms(issuer, key) == []


async def test_an_rsa_key_that_is_too_long_is_skipped(issuer: TestIssuer) -> None:
    long = rsa(n=base64url_encode(b"\xff" * 1025).decode())
    assert await algorithms(issuer, long, rsa(kid="good", alg="RS256")) == ["RS256"]


# --- documents --------------------------------------------------------------------------------------------------------

DISCOVERY = "/.well-known/openid-configuration"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[", f"ISSUER{DISCOVERY} is not JSON"),
        (b"[]", f"ISSUER{DISCOVERY} is not a JSON object"),
        (b"[" * 100_000, f"ISSUER{DISCOVERY} is not JSON"),
        (b"{}", "the discovery document has no issuer"),
        (b'{"issuer": 5}', "the discovery document has no issuer"),
        (b'{"issuer": "https://i"}', "the discovery document has no jwks_uri"),
        (b" " * 500_001, f"ISSUER{DISCOVERY} is larger than 500000 bytes"),
        (
            b'{"issuer": "https://i", "jwks_uri": "http://169.254.169.254/x"}',
            "http://169.254.169.254/x is neither https nor on the machine of both the issuer and this server",
        ),
    ],
)
async def test_a_discovery_document_that_cannot_be_used_is_a_failure(
    issuer: TestIssuer, content: bytes, message: str
) -> None:
    issuer.answers[DISCOVERY] = Response(content)
    assert await failure(issuer) == message


async def test_the_name_of_an_issuer_has_no_spaces(issuer: TestIssuer) -> None:
    issuer.tell(issuer="https://a b")
    assert await failure(issuer) == "the issuer's name has spaces"


async def test_a_redirect_is_not_followed(issuer: TestIssuer) -> None:
    issuer.answers["/keys"] = RedirectResponse("/elsewhere")
    assert await failure(issuer) == "ISSUER/keys answered 307"
    assert "/elsewhere" not in issuer.asked


async def test_a_set_without_keys_is_a_failure(issuer: TestIssuer) -> None:
    issuer.answer("/keys", {"keys": 5})
    assert await failure(issuer) == "the key set has no list of keys"


async def test_an_issuer_that_does_not_answer_in_time_is_a_failure(
    issuer: TestIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "FETCH_SECONDS", 0.1)
    issuer.is_awake.clear()
    assert await failure(issuer) == "no answer within 0.1 s"


async def test_an_issuer_that_nobody_serves_is_a_failure() -> None:
    with pytest.raises(IssuerFailure, match=r"^ConnectError: "):
        await IssuerClient("http://127.0.0.1:1/.well-known/openid-configuration").fetch()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://issuer.example/x", True),
        ("http://localhost:9000/x", True),
        ("http://127.0.0.1/x", True),
        ("http://[::1]/x", True),
        ("http://issuer.example/x", False),
        ("http://localhost.example/x", False),
        ("file:///etc/passwd", False),
        ("ftp://localhost/x", False),
    ],
)
def test_documents_come_over_https_or_from_this_machine(url: str, *, expected: bool) -> None:
    assert is_safe(url, url) is expected


@pytest.mark.parametrize("url", ["http://127.0.0.1:9000/x", "http://localhost/x", "https://[::1]/x"])
def test_a_remote_issuer_cannot_name_keys_on_this_machine(url: str) -> None:
    assert not is_safe(url, "https://issuer.example/x")
    assert is_safe("https://keys.example/x", "https://issuer.example/x")


async def test_a_key_set_on_this_machine_is_not_read_for_a_remote_issuer(
    issuer: TestIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = httpx.AsyncClient(
        transport=httpx.MockTransport(lambda _: httpx.Response(200, json=issuer.discovery_document()))
    )
    monkeypatch.setattr(documents, "make_client", lambda: client)
    remote = IssuerClient("https://issuer.example/.well-known/openid-configuration")
    with pytest.raises(IssuerFailure, match=r"/keys is neither https nor on the machine of both"):
        await remote.fetch()
    await remote.aclose()
    assert issuer.asked == []
