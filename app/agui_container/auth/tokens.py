"""Verification of JSON Web Tokens by the keys of their issuer. Implements ``ports.auth.Authenticator``.

Rules:

- A claim is read only after the signature was verified. Error messages never contain a part of the token.
- The documents are read in a thread, within ``FETCH_SECONDS`` or not at all. All callers share one reading.
- A token waits for a reading if its key is unknown or the keys are ``REFRESH_SECONDS`` old. There is one reading in
  ``ASK_SECONDS`` at most, because callers can invent ids of keys. Until then, and while the issuer does not answer, the
  known keys count.
- Keys are public and asymmetric; every other key of the set is skipped.

Sources: OpenID Connect Discovery 1.0, RFC 7515, RFC 7517, RFC 7519, RFC 8725.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from ssl import SSLContext
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

import httpx
import jwt
from anyio import to_thread
from jwt import PyJWK, PyJWKClient
from jwt.exceptions import PyJWTError

from agui_container.auth.claim_rules import TokenRules, expired, unauthorized
from agui_container.log_values import format_fields
from agui_container.ports import Clock
from agui_container.ports.auth import Principal
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.settings import is_loopback

FETCH_SECONDS = 5.0
"""Seconds in which both documents must have arrived."""

REFRESH_SECONDS = 600.0
"""Age at which keys are read again."""

MAX_AGE_SECONDS = 86_400.0
"""Age from which on keys are not used, if the issuer cannot be reached for so long."""

ASK_SECONDS = 30.0
"""Seconds between two readings while there are keys."""

RETRY_SECONDS = 1.0
"""Seconds between two readings while there are no keys."""

ALGORITHMS: Mapping[str, Sequence[str]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""Algorithms that a key may verify, by its type, so that a token cannot choose one that does not fit."""

MAX_TOKEN = 16_000
"""Characters of a token."""

SIGNATURES = jwt.PyJWS(options={"enforce_minimum_key_length": True})

T = TypeVar("T")

logger = logging.getLogger(__name__)


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


def verified_claims(token: str, keys: Sequence[PyJWK]) -> Mapping[str, object]:
    """Return the claims of a token. Raises ``AppError`` UNAUTHORIZED if none of the keys has signed it."""
    for key in keys:
        with suppress(PyJWTError, ValueError, RecursionError):
            claims = json.loads(SIGNATURES.decode(token, key.key, ALGORITHMS[str(key.key_type)]))
            if isinstance(claims, dict):
                return claims
    raise unauthorized("The token is not valid.")


# --- the issuer -------------------------------------------------------------------------------------------------------


class IssuerFailure(Exception):
    """A document of the issuer cannot be read. The text is for the log."""


class IssuerKeys(NamedTuple):
    """Name of an issuer, as ``iss`` of its tokens has it, and its keys."""

    issuer: str
    keys: Sequence[PyJWK]


class IssuerClient:
    """Reader of one issuer's keys. ``now`` is not monotonic, because that would not advance across a snapshot."""

    def __init__(self, discovery_url: str, now: Callable[[], float]) -> None:
        self._discovery_url = discovery_url
        self._now = now
        self._known: IssuerKeys | None = None
        self._fetched_at = self._asked_at = float("-inf")
        self._has_failed = False
        self._reading = asyncio.Lock()

    async def find(self, key_id: str | None) -> IssuerKeys:
        """Return the issuer with the keys that may have signed a token with this key id.

        Raises:
            AppError: UNAUTHORIZED if the issuer has no such key, AUTH_UNAVAILABLE if it cannot be asked.
        """
        if self._has_passed(REFRESH_SECONDS, self._fetched_at) or not self._matching(key_id):
            async with self._reading:
                await self._read_if_due()
        keys = self._matching(key_id)
        if self._known is not None and keys:
            return IssuerKeys(self._known.issuer, keys)
        if self._has_failed:
            raise AppError(
                ErrorCode.AUTH_UNAVAILABLE, "The token cannot be verified right now: its issuer does not answer."
            )
        raise unauthorized("The token is signed with an unknown key.")

    def _matching(self, key_id: str | None) -> Sequence[PyJWK]:
        """Return the keys with this id. A token without an id may be signed by any key, and so may a key sign any."""
        if self._known is None or self._has_passed(MAX_AGE_SECONDS, self._fetched_at):
            return ()
        return [key for key in self._known.keys if not key_id or key.key_id in (None, key_id)]

    def _has_passed(self, seconds: float, since: float) -> bool:
        """Return True if the time has passed, or nobody knows because the clock was set back."""
        return not 0 <= self._now() - since < seconds

    async def _read_if_due(self) -> None:
        if not self._has_passed(RETRY_SECONDS if self._known is None else ASK_SECONDS, self._asked_at):
            return
        try:
            self._known = await fetch_keys(self._discovery_url)
            self._fetched_at, self._has_failed = self._now(), False
        except IssuerFailure as failure:
            self._has_failed = True
            logger.warning("issuer keys not read %s", format_fields({"error": failure}))
        except Exception:
            self._has_failed = True
            logger.exception("issuer keys not read")
        self._asked_at = self._now()


@cache
def ssl_context() -> SSLContext:
    """Return the certificates of httpx, because an image may have none of its own."""
    return httpx.create_ssl_context()


async def fetch_keys(discovery_url: str) -> IssuerKeys:
    """Read both documents of an issuer. Raises ``IssuerFailure``."""

    def read() -> IssuerKeys:
        document = read_discovery(discovery_url)
        issuer, url = text_member(document, "issuer"), text_member(document, "jwks_uri")
        check_safe(url, discovery_url)
        client = PyJWKClient(url, cache_jwk_set=False, timeout=FETCH_SECONDS, ssl_context=ssl_context())
        return IssuerKeys(issuer, [key for key in client.get_jwk_set().keys if is_usable(key)])

    return await run_in_time(read)


async def fetch_endpoints(discovery_url: str) -> tuple[str, str]:
    """Return the URLs at which users sign in and clients get tokens.

    Raises:
        IssuerFailure: the issuer does not answer in time, or it signs nobody in.
    """
    document = await run_in_time(partial(read_discovery, discovery_url))
    urls = text_member(document, "authorization_endpoint"), text_member(document, "token_endpoint")
    for url in urls:
        check_safe(url, discovery_url)
    return urls


async def run_in_time(read: Callable[[], T]) -> T:
    """Run a function in a thread for ``FETCH_SECONDS``. Raises ``IssuerFailure`` for every failure of the network."""
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            return await to_thread.run_sync(read, abandon_on_cancel=True)
    except TimeoutError:
        raise IssuerFailure(f"no answer within {FETCH_SECONDS:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, PyJWTError) as error:
        raise IssuerFailure(f"{type(error).__name__}: {error}") from None


def read_discovery(url: str) -> Mapping[str, object]:
    """Read a discovery document. Raises ``IssuerFailure``, or an error of httpx."""
    check_safe(url, url)
    response = httpx.get(url, headers={"accept": "application/json"}, timeout=FETCH_SECONDS, verify=ssl_context())
    if response.status_code != httpx.codes.OK:
        raise IssuerFailure(f"{url} answered {response.status_code}")
    try:
        document: object = response.json()
    except (ValueError, RecursionError):
        raise IssuerFailure(f"{url} is not JSON") from None
    if not isinstance(document, dict):
        raise IssuerFailure(f"{url} is not a JSON object")
    return document


def check_safe(url: str, discovery_url: str) -> None:
    """Check that the URL is https or loopback, so that no third party can change the document.

    Loopback must be the issuer's own: a remote issuer could otherwise make the server call ports of this machine.

    Raises:
        IssuerFailure: it is neither.
    """
    parts = urlsplit(url)
    if is_loopback(parts.hostname or ""):
        is_safe = parts.scheme in ("http", "https") and is_loopback(urlsplit(discovery_url).hostname or "")
    else:
        is_safe = parts.scheme == "https"
    if not is_safe:
        raise IssuerFailure(f"{url} is neither https nor on the machine of both the issuer and this server")


def text_member(document: Mapping[str, object], name: str) -> str:
    """Return a member that is a string. Raises ``IssuerFailure``."""
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise IssuerFailure(f"the discovery document has no {name}")
    return value


def is_usable(key: PyJWK) -> bool:
    """Return True if a key is public and verifies signatures by one of ``ALGORITHMS``."""
    return key.key_type in ALGORITHMS and hasattr(key.key, "verify") and key.public_key_use in (None, "sig")
