"""Keys of an issuer and the tokens that they sign: with and without ids, and under both names of an algorithm."""

import json
from collections.abc import Mapping, Sequence

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import OKPAlgorithm

from agui_container.auth.issuer import MAX_KEYS
from agui_container.auth.key_cache import ASK_SECONDS
from tests.auth.conftest import Guarded
from tests.auth.issuer import AUDIENCE
from tests.auth.test_tokens import SERVED, UNAUTHORIZED, check
from tests.engine.doubles import START, Json
from tests.secret_search import remember_token

ED25519, ED448, OTHER = Ed25519PrivateKey.generate(), Ed448PrivateKey.generate(), Ed25519PrivateKey.generate()


def okp(key: Ed25519PrivateKey | Ed448PrivateKey, **members: object) -> Json:
    return {**OKPAlgorithm.to_jwk(key.public_key(), as_dict=True), **members}


def signed(guarded: Guarded, key: Ed25519PrivateKey | Ed448PrivateKey, algorithm: str, **header: str) -> str:
    """A token of the server's issuer with this header."""
    signer = jwt.PyJWS()
    if algorithm not in signer.get_algorithms():
        signer.register_algorithm(algorithm, OKPAlgorithm())
    claims = {"iss": guarded.issuer.url, "sub": "alice", "aud": AUDIENCE, "exp": START + 60}
    return remember_token(signer.encode(json.dumps(claims).encode(), key, algorithm, dict(header)))


KEYS: dict[str, tuple[Sequence[Json], Mapping[str, str]]] = {
    "neither has an id": ([okp(OTHER), okp(ED25519)], {}),
    "the token has no id": ([okp(OTHER, kid="a"), okp(ED25519, kid="b")], {}),
    "the keys have no id": ([okp(OTHER), okp(ED25519)], {"kid": "b"}),
    "two keys have one id": ([okp(OTHER, kid="b"), okp(ED25519, kid="b")], {"kid": "b"}),
    "the id of a key is a number": ([okp(ED25519, kid=7)], {"kid": "7"}),
}


@pytest.mark.parametrize(("keys", "header"), KEYS.values(), ids=KEYS)
async def test_a_token_is_verified_with_each_key_that_fits(
    guarded: Guarded, keys: Sequence[Json], header: Mapping[str, str]
) -> None:
    guarded.issuer.publish(*keys)
    check(await guarded.ask("sse", signed(guarded, ED25519, "EdDSA", **header)), "sse", "", SERVED)
    reply = await guarded.ask("sse", signed(guarded, Ed25519PrivateKey.generate(), "EdDSA", **header))
    assert reply.code == "UNAUTHORIZED"


async def test_a_token_that_names_another_key_is_not_verified(guarded: Guarded) -> None:
    guarded.issuer.publish(okp(ED25519, kid="a"))
    reply = await guarded.ask("sse", signed(guarded, ED25519, "EdDSA", kid="b"))
    assert (reply.code, reply.message) == ("UNAUTHORIZED", "The token is signed with an unknown key.")


@pytest.mark.parametrize("own", [None, "EdDSA", "curve"])
@pytest.mark.parametrize(("key", "curve"), [(ED25519, "Ed25519"), (ED448, "Ed448")], ids=["Ed25519", "Ed448"])
async def test_both_names_of_an_edwards_curve_are_the_same_algorithm(
    guarded: Guarded, key: Ed25519PrivateKey | Ed448PrivateKey, curve: str, own: str | None
) -> None:
    guarded.issuer.publish(okp(key, kid="a", **({} if own is None else {"alg": curve if own == "curve" else own})))
    for algorithm in ("EdDSA", curve):
        check(await guarded.ask("sse", signed(guarded, key, algorithm, kid="a")), "sse", "", SERVED)
    wrong = "Ed448" if curve == "Ed25519" else "Ed25519"
    assert (await guarded.ask("sse", signed(guarded, key, wrong, kid="a"))).code == "UNAUTHORIZED"


@pytest.mark.parametrize("passed", [ASK_SECONDS, -3_600.0], ids=["a while", "set back"])
async def test_a_new_key_without_an_id_is_found_when_it_is_first_used(
    guarded: Guarded, transport: str, passed: float
) -> None:
    guarded.issuer.publish(okp(OTHER))
    check(await guarded.ask(transport, signed(guarded, OTHER, "EdDSA")), transport, "", SERVED)
    guarded.issuer.publish(okp(ED25519))
    guarded.clock.now += passed
    check(await guarded.ask(transport, signed(guarded, ED25519, "EdDSA")), transport, "", SERVED)


@pytest.mark.parametrize(
    "key", [{"kty": "oct", "k": "c2VjcmV0"}, {"kty": "RSA", "n": 5, "e": []}, {"kty": "RSA", "n": "AQAB", "e": "AQAB"}]
)
async def test_a_token_of_a_key_that_cannot_be_used_is_signed_with_an_unknown_key(
    guarded: Guarded, transport: str, key: Json
) -> None:
    guarded.issuer.publish({**key, "kid": "a"})
    reply = await guarded.ask(transport, signed(guarded, ED25519, "EdDSA", kid="a"))
    check(reply, transport, "UNAUTHORIZED", UNAUTHORIZED)
    assert reply.message == "The token is signed with an unknown key."


async def test_more_keys_than_the_limit_are_logged(guarded: Guarded, caplog: pytest.LogCaptureFixture) -> None:
    guarded.issuer.publish(okp(ED25519, kid="a"), *({"kid": f"{number}"} for number in range(MAX_KEYS)))
    check(await guarded.ask("sse", signed(guarded, ED25519, "EdDSA", kid="a")), "sse", "", SERVED)
    assert f"issuer keys left out keys={MAX_KEYS + 1} limit={MAX_KEYS}" in caplog.text
