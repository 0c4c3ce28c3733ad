"""Inbound authorization of the data plane: SigV4, tokens, or none.

Rules: a signature is computed again by botocore's own signer and compared. A token is verified by the same code that
verifies it in the container. A runtime has one of the two, never both.

Sources: Signature Version 4 as ``botocore.auth.SigV4Auth`` computes it, devguide ``runtime-oauth`` and
``runtime-get-started-websocket``, ``customJWTAuthorizer`` of CreateAgentRuntime.
"""

import base64
import hmac
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Protocol
from urllib.parse import parse_qsl, urlsplit

from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
from botocore.credentials import Credentials  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from agui_container.auth.claim_rules import ClaimRule, TokenRules
from agui_container.platform.errors import PlatformError, PlatformRefusal
from agui_container.platform.headers import USER_ID
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.addresses import is_loopback
from agui_container.runtime.clock import SystemClock

SERVICE = "bedrock-agentcore"
ALGORITHM = "AWS4-HMAC-SHA256"
TIMESTAMP = "%Y%m%dT%H%M%SZ"
SKEW_SECONDS = 300.0
MAX_EXPIRES = 604_800
BEARER_PROTOCOL = "base64UrlBearerAuthorization"
SIGNATURE = re.compile(
    r"AWS4-HMAC-SHA256 +Credential=(?P<credential>[^,\s]+), *SignedHeaders=(?P<headers>[^,\s]+), *"
    r"Signature=(?P<signature>[0-9a-f]+)"
)


@dataclass(frozen=True, slots=True)
class InboundCall:
    """A request as it came, as far as authorization reads it.

    Attributes:
        method: HTTP method.
        path: path as it was sent, with its percent signs.
        query: query as it was sent.
        headers: headers with names in lower case.
        body: whole body.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = b""


class InboundAuthorizer(Protocol):
    """Decision about who may call.

    Attributes:
        forwards_token: True if ``Authorization`` may reach the container.
    """

    forwards_token: bool

    async def authorize(self, call: InboundCall) -> bool:
        """Return True if the call has a user: then the container gets a workload token. Raises ``PlatformRefusal``."""

    async def aclose(self) -> None:
        """Close all connections."""


class NoAuthorizer:
    """Admission of every caller, for a first try without credentials."""

    forwards_token = False

    async def authorize(self, call: InboundCall) -> bool:
        """Admit the call, unless a web page of another machine makes it. Raises ``PlatformRefusal``."""
        origin = call.headers.get("origin")
        if origin is not None and not is_loopback(urlsplit(origin).hostname or ""):
            raise PlatformRefusal(PlatformError.ACCESS_DENIED, f"Pages of {origin} may not call without credentials.")
        return USER_ID in call.headers

    async def aclose(self) -> None:
        """Do nothing."""


class SigV4Authorizer:
    """Verifier of SigV4 signatures in headers and in queries.

    Args:
        access_key: the id of the only key that may sign.
        secret_key: that key.
    """

    forwards_token = False

    def __init__(self, access_key: str, secret_key: str) -> None:
        self._credentials = Credentials(access_key, secret_key)

    async def authorize(self, call: InboundCall) -> bool:
        """Verify the signature. Raises ``PlatformRefusal`` ACCESS_DENIED, as AgentCore answers for SigV4 runtimes."""
        if problem := self._problem(call):
            raise PlatformRefusal(PlatformError.ACCESS_DENIED, problem)
        return USER_ID in call.headers

    async def aclose(self) -> None:
        """Do nothing."""

    def _problem(self, call: InboundCall) -> str | None:
        parts = signature_parts(call)
        if parts is None:
            return "Missing Authentication Token"
        access_key, _, scope = parts["credential"].partition("/")
        date, region, service, _ = [*scope.split("/"), "", "", "", ""][:4]
        if access_key != self._credentials.access_key:
            return "The security token included in the request is invalid."
        if service != SERVICE or not parts["timestamp"].startswith(date):
            return f"Credential should be scoped to the service {SERVICE} and to the day of the request."
        signed = {name: call.headers.get(name, "") for name in parts["headers"].split(";")}
        if "host" not in signed:
            return "'Host' must be a signed header."
        computed = self._sign(call, signed, region, parts["timestamp"])
        if not hmac.compare_digest(computed, parts["signature"]):
            return "The request signature we calculated does not match the signature you provided."
        return expiry_problem(parts)

    def _sign(self, call: InboundCall, signed: Mapping[str, str], region: str, timestamp: str) -> str:
        """Return the signature of a request, by botocore's signer."""
        query = "&".join(pair for pair in call.query.split("&") if not pair.startswith("X-Amz-Signature="))
        url = f"http://{call.headers.get('host', '')}{call.path}?{query}"
        request = AWSRequest(call.method, url, dict(signed), call.body)
        if content_hash := call.headers.get("x-amz-content-sha256"):
            request.headers["X-Amz-Content-SHA256"] = content_hash
        request.context["timestamp"] = timestamp
        signer = SigV4Auth(self._credentials, SERVICE, region)
        signature: str = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
        return signature


def signature_parts(call: InboundCall) -> Mapping[str, str] | None:
    """Return the parts of a signature, from the header or else from the query; None if there is none."""
    found = SIGNATURE.fullmatch(call.headers.get("authorization", ""))
    if found:
        timestamp = call.headers.get("x-amz-date", "")
        return {**found.groupdict(), "timestamp": timestamp, "expires": str(SKEW_SECONDS)}
    query = dict(parse_qsl(call.query))
    if query.get("X-Amz-Algorithm") != ALGORITHM:
        return None
    names = {"credential": "Credential", "headers": "SignedHeaders", "signature": "Signature"}
    times = {"timestamp": "Date", "expires": "Expires"}
    return {key: query.get(f"X-Amz-{name}", "") for key, name in (names | times).items()}


def expiry_problem(parts: Mapping[str, str]) -> str | None:
    """Return the reason why a signature is too old or too new, or None."""
    try:
        signed_at = datetime.strptime(parts["timestamp"], TIMESTAMP).replace(tzinfo=UTC).timestamp()
        expires = float(parts["expires"])
    except ValueError:
        return "The time of the signature cannot be read."
    now = time.time()
    if not 0 < expires <= MAX_EXPIRES or now < signed_at - SKEW_SECONDS or now > signed_at + expires:
        return f"Signature expired: {parts['timestamp']} is now {datetime.now(UTC).strftime(TIMESTAMP)}."
    return None


# --- tokens -----------------------------------------------------------------------------------------------------------

Texts = tuple[Annotated[str, Field(min_length=1)], ...]


class CustomJwtAuthorizer(BaseModel):
    """``customJWTAuthorizer`` of a runtime."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    discovery_url: str
    allowed_audience: Texts = ()
    allowed_clients: Texts = ()
    allowed_scopes: Texts = ()
    custom_claims: tuple[ClaimRule, ...] = ()


class AuthorizerConfiguration(BaseModel):
    """``authorizerConfiguration`` of a runtime, as CreateAgentRuntime takes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    custom_jwt_authorizer: CustomJwtAuthorizer = Field(alias="customJWTAuthorizer")


class JwtAuthorizer:
    """Verifier of bearer tokens.

    Args:
        configuration: value of ``customJWTAuthorizer``.
    """

    forwards_token = True

    def __init__(self, configuration: CustomJwtAuthorizer) -> None:
        from agui_container.auth.jwt_authenticator import JwtAuthenticator  # noqa: PLC0415 - needs the extra `jwt`

        rules = TokenRules(
            configuration.allowed_audience,
            configuration.allowed_clients,
            configuration.allowed_scopes,
            configuration.custom_claims,
        )
        self.discovery_url = configuration.discovery_url
        self.scopes = configuration.allowed_scopes
        self._authenticator = JwtAuthenticator(configuration.discovery_url, rules, SystemClock())

    async def authorize(self, call: InboundCall) -> bool:
        """Verify the token of the header or of the subprotocol.

        Raises:
            PlatformRefusal: UNAUTHORIZED with a challenge, ACCESS_DENIED, or INTERNAL_ERROR if the issuer is away.
        """
        try:
            await self._authenticator.authenticate(bearer_token(call.headers))
        except AppError as error:
            if error.code is ErrorCode.UNAUTHORIZED:
                challenge = f'Bearer resource_metadata="{metadata_url(call)}"'
                headers = {"www-authenticate": challenge}
                raise PlatformRefusal(PlatformError.UNAUTHORIZED, error.message, headers) from None
            if error.code is ErrorCode.ACCESS_DENIED:
                raise PlatformRefusal(PlatformError.ACCESS_DENIED, error.message) from None
            raise PlatformRefusal(PlatformError.INTERNAL_ERROR, error.message) from None
        return True

    async def aclose(self) -> None:
        """Close the connections to the issuer."""
        await self._authenticator.aclose()


def parse_configuration(text: str) -> CustomJwtAuthorizer:
    """Parse the JSON of an ``authorizerConfiguration``. Raises ``ValueError`` naming the field."""
    try:
        return AuthorizerConfiguration.model_validate_json(text).custom_jwt_authorizer
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """Return the token of ``Authorization``, or of the subprotocol that browsers send instead."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return token.strip()
    for offered in offered_protocols(headers):
        name, _, encoded = offered.partition(".")
        if name == BEARER_PROTOCOL and encoded:
            with suppress(ValueError):  # it is not base64url
                return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    return None


def offered_protocols(headers: Mapping[str, str]) -> list[str]:
    """Return the subprotocols that a socket offers."""
    return [offered.strip() for offered in headers.get("sec-websocket-protocol", "").split(",") if offered.strip()]


def metadata_url(call: InboundCall) -> str:
    """Return the address of the metadata that tells a client where tokens come from."""
    runtime = call.path.split("/")[2]
    base = f"http://{call.headers.get('host', '')}/runtimes/{runtime}/invocations"
    qualifier = dict(parse_qsl(call.query)).get("qualifier", "DEFAULT")
    return f"{base}/.well-known/oauth-protected-resource?qualifier={qualifier}"
