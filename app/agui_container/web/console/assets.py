"""Options of the chat page, and its files in memory: bytes, compressed bytes, and the headers they are served with.

Rule: only files of the ``static`` folder are served, by exact name, so that no path can lead out of it.
"""

import html
import json
import mimetypes
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

STATIC = Path(__file__).with_name("static")
COMPRESSED = ".gz"

ROOT = b'<html lang="en"'
"""Beginning of the tag that has the data attributes."""

IMMUTABLE = "public, max-age=31536000, immutable"
"""Value of Cache-Control for chunks, whose names contain a hash of the content."""

REVALIDATE = "no-cache"
"""Value of Cache-Control for all other files. Browsers ask every time, and get 304 for an unchanged file."""

TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


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
    title: str
    accent: str
    greeting: str = ""
    logo: Path | None = None
    app_domains: tuple[str, ...] = ()
    sign_in: SignIn | None = None


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


@dataclass(frozen=True)
class Asset:
    """One file, with a gzip copy where the build made one."""

    name: str
    body: bytes
    compressed: bytes | None = None

    @cached_property
    def etag(self) -> str:
        return f'"{sha256(self.body).hexdigest()[:32]}"'

    @property
    def media_type(self) -> str:
        suffix = Path(self.name).suffix
        return TYPES.get(suffix) or mimetypes.guess_type(self.name)[0] or "text/plain"

    @property
    def cache_control(self) -> str:
        return IMMUTABLE if self.name.startswith("chunks/") else REVALIDATE

    def with_attributes(self, attributes: Mapping[str, str]) -> "Asset":
        """Return the page with data attributes. Settings stand there, because the page may hold no inline script."""
        written = "".join(f' data-{name}="{html.escape(value)}"' for name, value in attributes.items() if value)
        return Asset(self.name, self.body.replace(ROOT, ROOT + written.encode(), 1))


def load_assets(options: ConsoleOptions, folder: Path = STATIC) -> dict[str, Asset]:
    """Read every file of a folder that the build made, by its path there, and the logo."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    assets = {
        name: Asset(name, body, files.get(name + COMPRESSED))
        for name, body in files.items()
        if not name.endswith(COMPRESSED)
    }
    attributes = {"title": options.title, "accent": options.accent, "greeting": options.greeting}
    if options.logo is not None:
        name = f"logo{options.logo.suffix.lower()}"
        assets[name] = Asset(name, options.logo.read_bytes())
        attributes["logo"] = f"console/{name}"
    index = assets["index.html"].with_attributes(attributes)
    title = f"<title>{html.escape(options.title)}</title>".encode()
    assets["index.html"] = Asset("index.html", index.body.replace(b"<title>Chat</title>", title))
    return assets
