"""Authentication of callers, the same for every transport.

Rule: a transport that makes a ``Caller`` passes it through ``CallerAuthentication.authenticate`` before anything else
sees it, and calls ``check_expiry`` for every message of a connection that stays open. Without an authenticator both do
nothing, and the owner is the session, or one owner that all callers share.

Source: RFC 6750; RFC 9728 for the challenge and the metadata of the protected resource.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from agui_container.ports import Caller
from agui_container.ports.auth import Authenticator
from agui_container.protocol.errors import AppError, ErrorCode

METADATA_PATH = "/.well-known/oauth-protected-resource"
BEARER = "bearer"
HOST = re.compile(r"[A-Za-z0-9._:\[\]-]+")
SECURE_SCHEMES = ("https", "wss")


@dataclass(frozen=True, slots=True)
class ProtectedResource:
    """OAuth protected resource: this server, as clients need it to get a token."""

    url: str
    issuer: str
    scopes: Sequence[str]

    def challenge(self, url: str) -> str:
        """Return the value of ``WWW-Authenticate``, which leads clients of ``url`` to the metadata."""
        return f'Bearer resource_metadata="{self.url or url}{METADATA_PATH}"'

    def routes(self) -> list[BaseRoute]:
        async def metadata(request: Request) -> Response:
            document = {
                "resource": self.url or url_of(request),
                "authorization_servers": [self.issuer],
                "bearer_methods_supported": ["header"],
                **({"scopes_supported": list(self.scopes)} if self.scopes else {}),
            }
            return JSONResponse(document)

        return [Route(METADATA_PATH, metadata)]


def url_of(connection: HTTPConnection) -> str:
    host = connection.headers.get("host", "")
    return server_url(connection.scope["scheme"], host) + str(connection.scope.get("root_path", ""))


def server_url(scheme: str, host: str) -> str:
    """An invalid host is replaced, because it comes from the client."""
    name = host if HOST.fullmatch(host) else "localhost"
    return f"{'https' if scheme in SECURE_SCHEMES else 'http'}://{name}"


class CallerAuthentication:
    """Authentication with an authenticator, or none, which lets every caller in."""

    def __init__(self, authenticator: Authenticator | None = None, resource: ProtectedResource | None = None) -> None:
        self._authenticator = authenticator
        self._resource = resource

    async def authenticate(self, caller: Caller, headers: Sequence[tuple[str, str]]) -> Caller:
        """Return the caller with its principal, which owns its threads. Names of ``headers`` are in lower case."""
        if self._authenticator is None:
            return caller
        if sum(name == "authorization" for name, _ in headers) > 1:
            raise AppError(ErrorCode.UNAUTHORIZED, "The Authorization header may be sent once.")
        principal = await self._authenticator.authenticate(bearer_token(caller))
        return replace(caller, owner=principal.owner, principal=principal, identity=principal.owner)

    def check_expiry(self, caller: Caller) -> None:
        if self._authenticator is not None and caller.principal is not None:
            self._authenticator.check_expiry(caller.principal)

    def routes(self) -> list[BaseRoute]:
        return [] if self._resource is None else self._resource.routes()

    def challenge(self, error: AppError, url: str) -> str | None:
        """Return the value of ``WWW-Authenticate`` for a refusal, or None if it has no such header."""
        if self._resource is None or error.code is not ErrorCode.UNAUTHORIZED:
            return None
        return self._resource.challenge(url)


NO_AUTHENTICATION = CallerAuthentication()


def bearer_token(caller: Caller) -> str | None:
    scheme, _, token = caller.headers.get("authorization", "").strip().partition(" ")
    return token.strip() or None if scheme.lower() == BEARER else None
