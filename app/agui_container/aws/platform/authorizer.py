"""Inbound authorization of the data plane: SigV4, tokens, or none.

Rules: a signature is computed again by botocore's own signer, over the headers that the client has signed and no
others, and compared. A token is verified by the same code that verifies it in the container. A runtime has one of the
two, never both. Every refusal is a ``PlatformRefusal``.

Sources: Signature Version 4 as ``botocore.auth.SigV4Auth`` computes it, devguide ``runtime-oauth`` and
``runtime-get-started-websocket``.
"""

import hashlib
import hmac
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest, HTTPHeaders  # type: ignore[import-untyped]
from botocore.credentials import Credentials  # type: ignore[import-untyped]

from agui_container.auth_factory import build_authenticator
from agui_container.aws.platform.errors import PlatformError, PlatformRefusal
from agui_container.aws.platform.headers import USER_ID
from agui_container.ports.agent import SystemClock
from agui_container.protocol.errors import AppError
from agui_container.settings import Settings, is_loopback

SERVICE = "bedrock-agentcore"
ALGORITHM = "AWS4-HMAC-SHA256"
TIMESTAMP = "%Y%m%dT%H%M%SZ"
SKEW_SECONDS = 300
MAX_EXPIRES = 604_800
CONTENT_HASH = "x-amz-content-sha256"
UNSIGNED = "UNSIGNED-PAYLOAD"
PARAMETER = re.compile(r"(Credential|SignedHeaders|Signature)=([^,\s]+)")


@dataclass(frozen=True, slots=True)
class InboundCall:
    """A request as it came, as far as authorization reads it: header names in lower case, path and query raw.

    ``protocol_token`` is a bearer token in the subprotocol of a socket, which browsers send instead of a header.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = b""
    protocol_token: str | None = None


class InboundAuthorizer(Protocol):
    """Decision about who may call."""

    forwards_token: bool = False
    """True if ``Authorization`` may reach the container."""

    async def authorize(self, call: InboundCall) -> bool:
        """Return True if the call has a user: then the container gets a workload token. Raises ``PlatformRefusal``."""


class NoAuthorizer(InboundAuthorizer):
    """Admission of every caller but web pages of other machines, for a first try without credentials."""

    async def authorize(self, call: InboundCall) -> bool:
        origin = call.headers.get("origin")
        if origin is not None and not is_loopback(urlsplit(origin).hostname or ""):
            raise PlatformRefusal(PlatformError.ACCESS_DENIED, f"Pages of {origin} may not call without credentials.")
        return USER_ID in call.headers


# --- signatures -------------------------------------------------------------------------------------------------------


class SignedRequestSigner(SigV4Auth):  # type: ignore[misc] # botocore has no types
    """botocore's signer for a request that somebody has signed: no header of it is left out or added."""

    def headers_to_sign(self, request: AWSRequest) -> HTTPHeaders:
        signed = HTTPHeaders()
        for name, value in request.headers.items():
            signed[name.lower()] = value
        return signed


class SigV4Authorizer(InboundAuthorizer):
    """Verifier of signatures in headers and in queries, made with the only key that may sign.

    It refuses with ACCESS_DENIED, as AgentCore does for SigV4 runtimes. ``now`` tells the time in Unix seconds.
    """

    def __init__(self, access_key: str, secret_key: str, now: Callable[[], float] = time.time) -> None:
        self._credentials = Credentials(access_key, secret_key)
        self._now = now

    async def authorize(self, call: InboundCall) -> bool:
        if problem := next(self._problems(call, signature_parameters(call)), None):
            raise PlatformRefusal(PlatformError.ACCESS_DENIED, problem)
        return USER_ID in call.headers

    def _problems(self, call: InboundCall, given: Mapping[str, str]) -> Iterator[str]:
        if not given:
            yield "Missing Authentication Token"
        access_key, _, region, *_ = [*given["Credential"].split("/"), "", "", ""]
        if access_key != self._credentials.access_key:
            yield "The security token included in the request is invalid."
        signed = {name: call.headers.get(name, "") for name in given["SignedHeaders"].split(";")}
        if call.headers.get(CONTENT_HASH, UNSIGNED) not in (UNSIGNED, hashlib.sha256(call.body).hexdigest()):
            yield f"The header {CONTENT_HASH} does not match the body."
        signature = self._sign(call, signed, region, given["Date"])
        if not hmac.compare_digest(signature.encode(), given["Signature"].encode()):
            yield "The request signature we calculated does not match the signature you provided."
        if not is_current(given["Date"], given["Expires"], self._now()):
            yield f"The signature of {given['Date']} has expired, or is not valid yet."

    def _sign(self, call: InboundCall, signed: Mapping[str, str], region: str, timestamp: str) -> str:
        query = "&".join(pair for pair in call.query.split("&") if not pair.startswith("X-Amz-Signature="))
        request = AWSRequest(
            call.method, f"http://{call.headers.get('host', '')}{call.path}?{query}", dict(signed), call.body
        )
        request.context["timestamp"] = timestamp
        signer = SignedRequestSigner(self._credentials, SERVICE, region)
        signature: str = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
        return signature


def signature_parameters(call: InboundCall) -> Mapping[str, str]:
    """Return the parameters of a signature by their names in a query, also those of a header; none if there is none."""
    header, query = call.headers.get("authorization", ""), dict(parse_qsl(call.query))
    found: dict[str, str] = {}
    if header.startswith(ALGORITHM):
        found = {
            "Date": call.headers.get("x-amz-date", ""),
            "Expires": str(SKEW_SECONDS),
            **dict(PARAMETER.findall(header)),
        }
    elif query.get("X-Amz-Algorithm") == ALGORITHM:
        found = {name.removeprefix("X-Amz-"): value for name, value in query.items()}
    return defaultdict(str, found)


def is_current(timestamp: str, expires: str, now: float) -> bool:
    try:
        age = now - datetime.strptime(timestamp, TIMESTAMP).replace(tzinfo=UTC).timestamp()
        return -SKEW_SECONDS <= age <= int(expires) <= MAX_EXPIRES
    except ValueError:
        return False


# --- tokens -----------------------------------------------------------------------------------------------------------


class JwtAuthorizer(InboundAuthorizer):
    """Verifier of bearer tokens, by the settings ``auth_…`` that `agui deploy` gives to a runtime."""

    forwards_token = True

    def __init__(self, settings: Settings) -> None:
        self._authenticator = build_authenticator(settings, SystemClock())

    async def authorize(self, call: InboundCall) -> bool:
        try:
            kind, _, token = call.headers.get("authorization", "").partition(" ")
            await self._authenticator.authenticate(token.strip() if kind.lower() == "bearer" else call.protocol_token)
        except AppError as error:
            row = PlatformError.__members__.get(error.code, PlatformError.INTERNAL_ERROR)
            raise PlatformRefusal(row, error.message) from None
        return True
