"""Documents of a token issuer over HTTP: its discovery document and its key set.

Rules: nothing blocks the event loop, and both documents together are read within ``FETCH_SECONDS`` or not at all. Keys
are public and asymmetric; every other key of the set is skipped. A key has the algorithms that it may verify, so a
token cannot choose an algorithm that does not fit its key.

Sources: OpenID Connect Discovery 1.0, RFC 7517, RFC 8725, RFC 9864.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK

from agui_container.runtime.addresses import is_loopback
from agui_container.runtime.log_values import format_fields

FETCH_SECONDS = 5.0
"""Seconds in which both documents must have arrived."""

MAX_DOCUMENT = 500_000
"""Bytes of one document."""

MAX_KEYS = 100
"""Maximum number of keys that are read from a key set."""

RSA_BITS = range(2048, 8193)
"""Sizes of RSA keys that are accepted. Shorter ones are weak, and longer ones slow."""

RSA_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ALGORITHMS: Mapping[tuple[str, str | None], tuple[str, ...]] = {
    ("RSA", None): RSA_ALGORITHMS,
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA", "Ed25519"),
    ("OKP", "Ed448"): ("EdDSA", "Ed448"),
}
"""Algorithms that a key may verify, by its type and curve. ``none`` and symmetric algorithms are not among them."""

EDDSA = ("EdDSA", "Ed25519", "Ed448")
"""Names of the algorithm EdDSA: the one of RFC 8037, and those of RFC 9864, which say the curve too."""

PUBLIC_MEMBERS = ("kty", "n", "e", "crv", "x", "y")
"""Members of a JSON Web Key that describe a public key."""

logger = logging.getLogger(__name__)


class IssuerFailure(Exception):
    """A document of the issuer cannot be read. The text is for the log."""


class IssuerKey(NamedTuple):
    """One key of an issuer: its id, which is empty if it has none, and the algorithms that it may verify."""

    id: str
    algorithms: Collection[str]
    jwk: PyJWK


@dataclass(frozen=True, slots=True)
class IssuerKeys:
    """Name and keys of an issuer.

    Attributes:
        issuer: value of ``iss`` in the issuer's tokens.
        keys: the keys that can be used.
    """

    issuer: str
    keys: Sequence[IssuerKey]

    def candidates(self, key_id: str, algorithm: str) -> Sequence[IssuerKey]:
        """Return the keys that may have signed a token, those with its id first.

        A token without an id may be signed by any key, and a key without an id may sign any token.
        """
        fitting = [key for key in self.keys if algorithm in key.algorithms and (not key_id or key.id in ("", key_id))]
        return sorted(fitting, key=lambda key: key.id != key_id)


class IssuerClient:
    """Reader of one issuer's documents.

    Args:
        discovery_url: URL of the discovery document.
    """

    def __init__(self, discovery_url: str) -> None:
        self._discovery_url = discovery_url
        self._client: httpx.AsyncClient | None = None

    async def fetch(self) -> IssuerKeys:
        """Read the discovery document, and then the key set that it names.

        Raises:
            IssuerFailure: the issuer does not answer in time, or a document is malformed.
        """
        async with self._connected() as client:
            document = await self._document(client, self._discovery_url)
            issuer = text_member(document, "issuer")
            key_set = await self._document(client, text_member(document, "jwks_uri"))
        if any(character.isspace() for character in issuer):
            raise IssuerFailure("the issuer's name has spaces")
        return IssuerKeys(issuer, parse_key_set(key_set))

    async def fetch_endpoints(self) -> tuple[str, str]:
        """Read the discovery document. Return the URLs at which users sign in and clients get tokens.

        Raises:
            IssuerFailure: as ``fetch``, or the issuer signs nobody in.
        """
        async with self._connected() as client:
            document = await self._document(client, self._discovery_url)
        urls = text_member(document, "authorization_endpoint"), text_member(document, "token_endpoint")
        for url in urls:
            if not is_safe(url, self._discovery_url):
                raise IssuerFailure(f"{url} is neither https nor on this machine")
        return urls

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[httpx.AsyncClient]:
        """Give the HTTP client for ``FETCH_SECONDS``. Raises ``IssuerFailure`` for every failure of the network."""
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                if self._client is None:
                    self._client = await asyncio.to_thread(make_client)  # it loads certificates
                yield self._client
        except TimeoutError:
            raise IssuerFailure(f"no answer within {FETCH_SECONDS:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise IssuerFailure(f"{type(error).__name__}: {error}") from None

    async def aclose(self) -> None:
        """Close the HTTP client."""
        if self._client is not None:
            await self._client.aclose()

    async def _document(self, client: httpx.AsyncClient, url: str) -> Mapping[str, object]:
        if not is_safe(url, self._discovery_url):
            raise IssuerFailure(f"{url} is neither https nor on the machine of both the issuer and this server")
        async with client.stream("GET", url) as response:
            if response.status_code != httpx.codes.OK:
                raise IssuerFailure(f"{url} answered {response.status_code}")
            body = b""
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > MAX_DOCUMENT:
                    raise IssuerFailure(f"{url} is larger than {MAX_DOCUMENT} bytes")
        return parse_object(body, url)


def make_client() -> httpx.AsyncClient:
    """Return the HTTP client. It keeps no connection, because connections do not survive a snapshot of the process."""
    return httpx.AsyncClient(
        headers={"accept": "application/json", "accept-encoding": "identity"},
        timeout=FETCH_SECONDS,
        limits=httpx.Limits(max_keepalive_connections=0),
    )


def is_safe(url: str, discovery_url: str) -> bool:
    """Return True if the URL is https or loopback, so that no third party can change the document.

    Loopback must be the issuer's own: a remote issuer could otherwise make the server call ports of this machine.
    """
    parts = urlsplit(url)
    if is_loopback(parts.hostname or ""):
        return parts.scheme in ("http", "https") and is_loopback(urlsplit(discovery_url).hostname or "")
    return parts.scheme == "https"


def parse_object(body: bytes, url: str) -> Mapping[str, object]:
    """Parse a JSON object. Raises ``IssuerFailure``."""
    try:
        document: object = json.loads(body)
    except (ValueError, RecursionError):
        raise IssuerFailure(f"{url} is not JSON") from None
    if not isinstance(document, dict):
        raise IssuerFailure(f"{url} is not a JSON object")
    return document


def text_member(document: Mapping[str, object], name: str) -> str:
    """Return a member that is a string. Raises ``IssuerFailure``."""
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise IssuerFailure(f"the discovery document has no {name}")
    return value


def parse_key_set(document: Mapping[str, object]) -> Sequence[IssuerKey]:
    """Return the keys of a key set that verify signatures. There may be none.

    Raises:
        IssuerFailure: it is not a key set.
    """
    entries = document.get("keys")
    if not isinstance(entries, list):
        raise IssuerFailure("the key set has no list of keys")
    if len(entries) > MAX_KEYS:
        logger.warning("issuer keys left out %s", format_fields({"keys": len(entries), "limit": MAX_KEYS}))
    keys = [key for entry in entries[:MAX_KEYS] if isinstance(entry, dict) and (key := parse_key(entry)) is not None]
    if not keys:
        logger.warning("the issuer has no key that can be used %s", format_fields({"keys": len(entries)}))
    return keys


def parse_key(entry: Mapping[str, object]) -> IssuerKey | None:
    """Return one key, or None with a line in the log if it cannot be used."""
    key_id, own = entry.get("kid"), entry.get("alg")
    key_id = key_id if isinstance(key_id, str) else ""
    kind = (str(entry.get("kty")), None if entry.get("kty") == "RSA" else str(entry.get("crv")))
    wanted = EDDSA if own in EDDSA else (own,)
    algorithms = [name for name in ALGORITHMS.get(kind, ()) if own is None or name in wanted]
    if not algorithms or entry.get("use", "sig") != "sig":
        return None
    public = {name: entry[name] for name in PUBLIC_MEMBERS if name in entry}
    try:
        jwk = PyJWK(public, "EdDSA" if "EdDSA" in algorithms else algorithms[0])
    except Exception as error:  # noqa: BLE001 - a key that the libraries cannot read must not hide the others
        logger.warning("issuer key skipped %s", format_fields({"kid": key_id, "error": type(error).__name__}))
        return None
    if isinstance(jwk.key, RSAPublicKey) and jwk.key.key_size not in RSA_BITS:
        logger.warning("issuer key skipped %s", format_fields({"kid": key_id, "bits": jwk.key.key_size}))
        return None
    return IssuerKey(key_id, algorithms, jwk)
