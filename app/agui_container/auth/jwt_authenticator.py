"""Verification of JSON Web Tokens. Implements ``ports.auth.Authenticator``.

Rule: a claim is read only after the signature was verified. Error messages never contain a part of the token.

Sources: RFC 7515, RFC 7519, RFC 8725.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

import jwt
from jwt.exceptions import PyJWTError

from agui_container.auth.claim_rules import TokenRules, expired, unauthorized
from agui_container.auth.issuer import ALGORITHMS, IssuerClient
from agui_container.ports import Clock
from agui_container.ports.auth import Principal

MAX_TOKEN = 16_000
"""Characters of a token."""

SIGNATURES = jwt.PyJWS(options={"enforce_minimum_key_length": True})


class JwtAuthenticator:
    def __init__(self, discovery_url: str, rules: TokenRules, clock: Clock) -> None:
        self._issuer = IssuerClient(discovery_url, clock.time)
        self._rules = rules
        self._clock = clock

    async def authenticate(self, token: str | None) -> Principal:
        if token is None:
            raise unauthorized("A bearer token is required.")
        issuer, keys = await self._issuer.find(read_key_id(token))
        return self._rules.principal(verified_claims(token, keys), issuer, self._clock.time())

    def check_expiry(self, principal: Principal) -> None:
        if self._clock.time() >= principal.expires_at:
            raise expired()


def read_key_id(token: str) -> str | None:
    """Return the key id that a token names, or None. Raises ``AppError`` UNAUTHORIZED if it is not a token."""
    if len(token) > MAX_TOKEN:
        raise unauthorized(f"The token has more than {MAX_TOKEN} characters.")
    try:
        key_id: str | None = jwt.get_unverified_header(token).get("kid")
    except (PyJWTError, ValueError, RecursionError):
        raise unauthorized("The token is not a JSON Web Token.") from None
    return key_id


def verified_claims(token: str, keys: Sequence[jwt.PyJWK]) -> Mapping[str, object]:
    """Return the claims of a token. Raises ``AppError`` UNAUTHORIZED if none of the keys has signed it."""
    for key in keys:
        with suppress(PyJWTError, ValueError, RecursionError):
            claims = json.loads(SIGNATURES.decode(token, key.key, ALGORITHMS[str(key.key_type)]))
            if isinstance(claims, dict):
                return claims
    raise unauthorized("The token is not valid.")
