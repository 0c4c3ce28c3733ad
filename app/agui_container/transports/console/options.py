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
    """Sign-in at the issuer by authorization code with PKCE, in the browser.

    Attributes:
        client_id: id of the page at the issuer. It is a public client, which has no secret.
        scope: scopes to ask for, separated by spaces.
        find_endpoints: asks the issuer. None if it does not answer, or cannot sign anybody in.
        found: the answer, once there was one.
    """

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
        """Return what the page needs, as JSON."""
        names = {"authorizationEndpoint": endpoints.authorization, "tokenEndpoint": endpoints.token}
        return json.dumps({"clientId": self.client_id, "scope": self.scope, **names})


class ConsoleOptions(Struct, frozen=True):
    """Options of the page.

    Attributes:
        title: the page's title, and the product's name.
        accent: colour as ``#rrggbb``.
        greeting: headline of a new chat; empty for the title.
        logo: file of an image beside the title, or None.
        sign_in: sign-in at the issuer of the server's tokens, or None.
    """

    title: str
    accent: str
    greeting: str = ""
    logo: Path | None = None
    sign_in: SignIn | None = None


def origin_of(url: str) -> str:
    """Return the origin of a URL, as a Content-Security-Policy names it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
