"""Options of the chat page: its looks, and how a user signs in."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct


class SignInEndpoints(Struct, frozen=True):
    """URLs of the issuer: for the sign-in in a browser, and for the token after it."""

    authorization: str
    token: str


class SignIn(Struct):
    """Sign-in at the issuer by authorization code with PKCE, in the browser. The client is public: it has no secret."""

    client_id: str
    scope: str
    find_endpoints: Callable[[], Awaitable[SignInEndpoints | None]]
    found: SignInEndpoints | None = None

    async def endpoints(self) -> SignInEndpoints | None:
        """Return the endpoints. The issuer is asked until it has answered once."""
        if self.found is None:
            self.found = await self.find_endpoints()
        return self.found

    def describe(self, endpoints: SignInEndpoints) -> str:
        names = {"authorizationEndpoint": endpoints.authorization, "tokenEndpoint": endpoints.token}
        return json.dumps({"clientId": self.client_id, "scope": self.scope, **names})


class ConsoleOptions(Struct, frozen=True):
    """Options of the page."""

    title: str
    accent: str
    greeting: str = ""
    logo: Path | None = None
    app_domains: tuple[str, ...] = ()
    sign_in: SignIn | None = None


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
