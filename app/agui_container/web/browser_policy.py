"""Decide which web pages may call this server.

Rule: a web page must not drive or read an agent on someone's laptop. A browser shows itself by ``Origin`` or by
``Sec-Fetch-Site``, which no page can set. Requests without both come from other clients and pass. Two attacks are
stopped:

- A page of another site calls this server. Its ``Origin`` is foreign, or ``Sec-Fetch-Site`` says so where a GET carries
  no ``Origin``.
- A page makes its own host name resolve to this machine (DNS rebinding). For the browser it is then a page of this
  server, but the ``Host`` header still has the foreign name.

``Sec-Fetch-Mode`` alone shows no browser, because Node's ``fetch`` sends it, too. Source: W3C Fetch Metadata Request
Headers, by which browsers send these headers to https and to loopback hosts only.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.types import Scope

from agui_container.log_values import format_fields
from agui_container.protocol.errors import AppError, ErrorCode

Headers = Sequence[tuple[str, str]]
"""Names, lower-cased, with values, in the order in which they came."""

DEFAULT_PORTS = {"http": 80, "https": 443}
OWN_SITES = ("same-origin", "none")
"""Values of ``Sec-Fetch-Site`` for a page of this server, and for an address that the user has typed."""


MAX_LOGGED = 200
"""Characters of an origin or host in the log."""

FOREIGN_ORIGIN = "This origin may not call this server; see AGUI_CORS_ORIGINS."

logger = logging.getLogger(__name__)


def log_refused_page(origin: str | None, host: str) -> None:
    """Log that a web page was refused, with the origin that ``AGUI_CORS_ORIGINS`` would have to name."""
    fields = {"origin": (origin or "none")[:MAX_LOGGED], "host": host[:MAX_LOGGED]}
    logger.warning("web page refused %s", format_fields(fields))


class BrowserPolicy:
    """Origins and hosts with which browsers may call. ``localhost``, IP addresses and hosts of origins need no name."""

    def __init__(self, origins: Collection[str], hosts: Collection[str]) -> None:
        self._origins = frozenset(origins)
        names = (*(host.lower() for host in hosts), *(host_name(urlsplit(origin).netloc) for origin in origins))
        self._hosts = frozenset(filter(None, names))

    def check(self, headers: Headers, scope: Scope) -> None:
        """Check a request or a WebSocket handshake. Raises ``AppError`` ACCESS_DENIED for a page that may not call."""
        found = dict(reversed(headers))  # of several values the first one
        reason = self._refusal(found, scope)
        if reason is not None:
            log_refused_page(found.get("origin"), found.get("host", ""))
            raise AppError(ErrorCode.ACCESS_DENIED, reason)

    def _refusal(self, headers: Mapping[str, str], scope: Scope) -> str | None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin in self._origins or (origin is None and site is None):
            return None
        host = headers.get("host", "")
        if origin is not None and not same_host(origin, host):
            return FOREIGN_ORIGIN
        if not self._allows_host(host):
            return "Pages may not call this host name; see AGUI_ALLOWED_HOSTS."
        if origin is None and site not in OWN_SITES and not opens_start_page(headers, scope):
            return "Other sites may not call this server; see AGUI_CORS_ORIGINS."
        return None

    def _allows_host(self, host: str) -> bool:
        """Return True for a host name that no foreign page can have: an address, ``localhost`` or a configured name."""
        name = host_name(host)
        return name == "localhost" or name.endswith(".localhost") or name in self._hosts or is_address(name)


def opens_start_page(headers: Mapping[str, str], scope: Scope) -> bool:
    """Return True if a user follows a link to ``/`` in a window, as opposed to a frame."""
    is_navigation = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return is_navigation and route_path(scope) == "/" and scope.get("method") in ("GET", "HEAD")


def route_path(scope: Scope) -> str:
    """Return the path below the prefix where the application is mounted. Source: ASGI's ``root_path``."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def same_host(origin: str, host: str) -> bool:
    """Return True if a web page's origin is the host it calls, with or without the scheme's default port."""
    try:
        page = urlsplit(origin)
        port = page.port or DEFAULT_PORTS.get(page.scheme)
        called = urlsplit(f"//{host}")
        called_port = called.port or DEFAULT_PORTS.get(page.scheme)
    except ValueError:
        return False
    return page.hostname is not None and (page.hostname, port) == (called.hostname, called_port)


def host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:
        return ""


def is_address(name: str) -> bool:
    """Return True for an IP address, which no page can have made its own name."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
