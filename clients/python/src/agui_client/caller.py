"""The caller of a server: its address, and the headers that say who asks.

Rule: a URL, a token and a signature are made anew for each connection, so that none of them is ever too old.
"""

from dataclasses import dataclass
from functools import partial
from typing import Unpack
from urllib.parse import urlsplit, urlunsplit

from agui_client.agentcore import (
    SESSION_HEADER,
    SigV4,
    agentcore_region,
    agentcore_url,
    check_session_id,
    is_presigned,
    new_session_id,
)
from agui_client.own_thread import in_thread
from agui_client.session_options import SessionOptions
from agui_client.transport import Provided, provide

DEFAULT_PATHS = {"http": "/invocations", "https": "/invocations", "ws": "/ws", "wss": "/ws"}


@dataclass(frozen=True, slots=True)
class Address:
    """Target of one connection, and the headers that it sends. ``sigv4`` signs them, if there is one."""

    url: str
    headers: dict[str, str]
    sigv4: SigV4 | None

    async def handshake_headers(self, url: str) -> dict[str, str]:
        """Return the headers of a socket's handshake. They are signed in a thread because credentials may take time."""
        if self.sigv4 is None:
            return self.headers
        return {**self.headers, **await in_thread(partial(self.sigv4.headers, "GET", url, self.headers))}


class Caller:
    """The caller of one server, by those options that say who asks.

    Raises ``ValueError`` if the URL, the ARN or the session id cannot be right.
    """

    def __init__(self, url: Provided, **options: Unpack[SessionOptions]) -> None:
        self.url = complete_url(url) if isinstance(url, str) else url
        self.session_id = options.get("session_id")
        self._token = options.get("token")
        self._headers = dict(options.get("headers", {}))
        self._sigv4 = options.get("sigv4")
        if self.session_id is not None:
            check_session_id(self.session_id)
        elif isinstance(self.url, str) and agentcore_region(self.url):
            self.session_id = new_session_id()

    @property
    def place(self) -> str:
        """The server's URL, for people. A function makes another one for each connection."""
        return self.url if isinstance(self.url, str) else "the server"

    @property
    def uses_websocket(self) -> bool:
        """True for a URL of WebSocket, and for a function, which makes such URLs."""
        return not isinstance(self.url, str) or urlsplit(self.url).scheme in {"ws", "wss"}

    async def address(self) -> Address:
        """Make the address of a new connection. Raises ``ConnectionDropped`` if a function of it fails."""
        url = await provide(self.url)
        if is_presigned(url):
            return Address(url, self._headers, None)
        headers = dict(self._headers)
        if self.session_id is not None:
            headers[SESSION_HEADER] = self.session_id
        if self._token is not None:
            headers["Authorization"] = f"Bearer {await provide(self._token)}"
            return Address(url, headers, None)
        region = agentcore_region(url)
        return Address(url, headers, self._sigv4 or (SigV4(region) if region else None))


def complete_url(url: str) -> str:
    """Return the whole URL of a server: that of an ARN, or with the usual path where the URL has none."""
    if url.startswith("arn:"):
        return agentcore_url(url)
    parts = urlsplit(url)
    if parts.scheme not in DEFAULT_PATHS or not parts.netloc:
        raise ValueError(f"{url!r} is no URL of http, https, ws or wss, and no ARN of an AgentCore runtime.")
    return urlunsplit(parts._replace(path=DEFAULT_PATHS[parts.scheme])) if parts.path in {"", "/"} else url
