"""Verification of JSON Web Tokens. Implements ``ports.auth.Authenticator``.

Rule: a claim is read only after the signature was verified. Error messages never contain a part of the token.

Sources: RFC 7515, RFC 7519, RFC 8725, RFC 9864.
"""

import json
from collections.abc import Mapping
from functools import cache, partial

import jwt
from jwt.algorithms import OKPAlgorithm
from jwt.exceptions import PyJWTError

from agui_container.auth.claim_rules import TokenRules, expired, unauthorized
from agui_container.auth.issuer import EDDSA, IssuerClient
from agui_container.auth.key_cache import KeyCache
from agui_container.ports import Clock
from agui_container.ports.auth import Principal

MAX_TOKEN = 16_000
"""Characters of a token."""


class JwtAuthenticator:
    """Verifier of the tokens of one issuer.

    Args:
        discovery_url: URL of the issuer's discovery document.
        rules: requirements on the claims.
        clock: source of time.
    """

    def __init__(self, discovery_url: str, rules: TokenRules, clock: Clock) -> None:
        self._issuer = IssuerClient(discovery_url)
        self._keys = KeyCache(self._issuer.fetch, clock.time)
        self._rules = rules
        self._clock = clock

    async def authenticate(self, token: str | None) -> Principal:
        """Verify the signature and the claims of a token. Raises ``AppError`` as in the port."""
        if token is None:
            raise unauthorized("A bearer token is required.")
        key_id, algorithm = read_header(token)
        issuer, payload = await self._keys.verify(key_id, algorithm, partial(verified_payload, token, algorithm))
        return self._rules.principal(parse_claims(payload), issuer, self._clock.time())

    def check_expiry(self, principal: Principal) -> None:
        """Check the expiry. Raises ``AppError`` UNAUTHORIZED."""
        if self._clock.time() >= principal.expires_at:
            raise expired()

    async def aclose(self) -> None:
        """Close the connections to the issuer."""
        await self._keys.aclose()
        await self._issuer.aclose()


def read_header(token: str) -> tuple[str, str]:
    """Return the key id and the algorithm that a token names. The id is empty if it names none.

    Raises:
        AppError: UNAUTHORIZED if it is not a token.
    """
    if len(token) > MAX_TOKEN:
        raise unauthorized(f"The token has more than {MAX_TOKEN} characters.")
    try:
        header = jwt.get_unverified_header(token)
    except (PyJWTError, ValueError):
        raise unauthorized("The token is not a JSON Web Token.") from None
    return str(header.get("kid", "")), str(header.get("alg", ""))


def verified_payload(token: str, algorithm: str, key: jwt.PyJWK) -> bytes | None:
    """Return the payload of a token, or None if it is not signed with this key."""
    try:
        payload: bytes = make_verifier().decode(token, key.key, [algorithm])
    except (PyJWTError, ValueError):
        return None
    return payload


@cache
def make_verifier() -> jwt.PyJWS:
    """Return the verifier of signatures, which knows the names of RFC 9864 as well."""
    verifier = jwt.PyJWS()
    for name in EDDSA:
        if name not in verifier.get_algorithms():
            verifier.register_algorithm(name, OKPAlgorithm())
    return verifier


def parse_claims(payload: bytes) -> Mapping[str, object]:
    """Return the claims of a token. Raises ``AppError`` UNAUTHORIZED if the payload has none."""
    try:
        claims: object = json.loads(payload)
    except (ValueError, RecursionError):
        raise unauthorized("The token is not valid.") from None
    if not isinstance(claims, dict):
        raise unauthorized("The token has no claims.")
    return claims
