"""HTML pages for people: one layout, and headers that let nothing else run.

Rule: a page is one response without script, images and cookies. Its style sheet is inside, and the
Content-Security-Policy names it by its hash. Addresses are relative, so a page works behind any path prefix, also
behind a proxy that removes the prefix.
"""

import base64
from hashlib import sha256
from html import escape
from urllib.parse import quote

from starlette.requests import HTTPConnection
from starlette.responses import Response

from agui_container.transports.formats import names_event_format, names_media_type

SECURITY_HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every page, beside its Content-Security-Policy."""

PATH_CHARACTERS = "/!$&'()*+,;=:@"
"""Characters that clients send in a path as they are, beside letters, digits and ``-._~`` (RFC 3986)."""

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 56rem; margin: 0 auto; padding: 2rem 1rem 4rem; overflow-wrap: anywhere; }
h1, h2 { line-height: 1.2; }
h2 { margin-top: 2.5rem; }
code, pre { font: 0.875em/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: 0.75rem; border: 1px solid #8885; border-radius: 0.4rem; white-space: pre-wrap; }
details { border: 1px solid #8885; border-radius: 0.4rem; margin: 0.5rem 0; padding: 0 0.75rem; }
summary { cursor: pointer; padding: 0.5rem 0; }
th, td { overflow-wrap: break-word; }
table { border-collapse: collapse; width: 100%; margin: 0.5rem 0; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid #8883; }
.method { display: inline-block; min-width: 4.2em; font-weight: 700; }
.small { font-size: 0.875rem; }
"""


def hash_source(content: bytes) -> str:
    """Return the source of an inline script or style sheet, as a Content-Security-Policy names it."""
    return f"'sha256-{base64.b64encode(sha256(content).digest()).decode()}'"


CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src {hash_source(STYLE.encode())}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

PAGE_HEADERS = {**SECURITY_HEADERS, "Content-Security-Policy": CONTENT_SECURITY_POLICY, "Vary": "Accept"}
"""All headers of a page, besides its type and length."""

LINKS = {"/": "Chat page", "/docs": "HTTP API", "/capabilities": "Capabilities of this server, as JSON"}
"""Addresses that a page offers, if the application has them."""


def wants_page(connection: HTTPConnection) -> bool:
    """True if a person in a browser asks: a GET whose ``Accept`` names HTML and no event format."""
    is_read = connection.scope.get("method") in {"GET", "HEAD"}
    return is_read and names_media_type(connection, "text/html") and not names_event_format(connection)


def html_page(title: str, body: str, *, status: int) -> Response:
    """Return a small page with a status. ``title`` and ``body`` are those of ``html_document``."""
    return Response(html_document(title, body), status, PAGE_HEADERS, media_type="text/html")


def html_document(title: str, body: str) -> str:
    """Return the HTML of a page.

    Args:
        title: plain text of the title and of the heading.
        body: HTML of everything below the heading, with all client input escaped.
    """
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )


def links(connection: HTTPConnection) -> str:
    """Return the list of links to the pages that the application has, as HTML."""
    paths = {getattr(route, "path", None) for route in connection.app.routes}
    root = path_to_root(connection)
    items = (f'<li><a href="{root}{path[1:]}">{text}</a></li>' for path, text in LINKS.items() if path in paths)
    return f"<ul>{''.join(items)}</ul>"


def path_to_root(connection: HTTPConnection) -> str:
    """Return the relative address of ``/`` as seen from the requested address, for example ``../`` or ``./``."""
    raw_path: bytes = connection.scope.get("raw_path") or quote(connection.scope["path"]).encode()
    route = raw_path.decode("latin-1").removeprefix(quote(connection.scope.get("root_path", ""), safe=PATH_CHARACTERS))
    return "../" * (route.count("/") - 1) or "./"
