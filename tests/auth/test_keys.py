"""Keys of an issuer and the tokens that they sign: with and without ids."""

from collections.abc import Mapping, Sequence

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import OKPAlgorithm

from tests.auth.conftest import Guarded
from tests.auth.issuer import AUDIENCE
from tests.auth.test_tokens import SERVED, check
from tests.engine.doubles import START, Json
from tests.secret_search import remember_token

pytestmark = pytest.mark.wire

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
