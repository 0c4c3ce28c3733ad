"""The routes of the chat page: ``/`` and the files under ``/console``.

Rules:

- The page loads nothing but its own files and runs no inline script, so text of a model cannot run even if it got past
  the sanitizer. No cookie is set. Addresses in the page are relative, so it works behind any path prefix.
- An MCP App is code of others. Its frame is a document of its own, whose policy gives it an origin that nothing else
  has, and no network but the domains that the app names and the operator allows.
"""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from agui_container.web.console.assets import Asset, ConsoleOptions, load_assets, origin_of

SECURITY_HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every file, beside its Content-Security-Policy."""

NOT_MODIFIED = 304
NOT_FOUND = 404

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src {connect}; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

APP_FRAME = "app-frame.html"
APP_POLICY = (
    "sandbox allow-scripts allow-forms; default-src 'none'; connect-src{connect}; "
    "script-src 'unsafe-inline'{resource}; "
    "style-src 'unsafe-inline'{resource}; img-src data:{resource}; font-src{resource}; media-src{resource}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""Policy of the frame of an app. A directive without a source allows nothing."""

DOMAIN = re.compile(r"(https?|wss?)://(\*\.)?[A-Za-z0-9.-]+(:[0-9]+)?")


def routes(options: ConsoleOptions) -> list[BaseRoute]:
    """Routes of the page. Its files are read when the first one is asked for."""

    @cache
    def assets() -> Mapping[str, Asset]:
        return load_assets(options)

    async def page(request: Request) -> Response:
        page, sign_in = assets()["index.html"], options.sign_in
        endpoints = await sign_in.endpoints() if sign_in is not None else None
        if sign_in is None or endpoints is None:
            return respond(page, request, page_headers())
        page = page.with_attributes({"sign-in": sign_in.describe(endpoints)})
        return respond(page, request, page_headers(f"'self' {origin_of(endpoints.token)}"))

    async def file(request: Request) -> Response:
        asset = assets().get(request.path_params["name"])
        if asset is None or asset.name == "index.html":
            raise HTTPException(NOT_FOUND)
        if asset.name == APP_FRAME:
            return respond(asset, request, app_headers(request, options.app_domains))
        return respond(asset, request, page_headers())

    return [Route("/", page), Route("/console/{name:path}", file)]


def page_headers(connect: str = "'self'") -> dict[str, str]:
    """Return what the page may do. ``connect`` has the servers with which it may connect."""
    return {**SECURITY_HEADERS, "Content-Security-Policy": CONTENT_SECURITY_POLICY.format(connect=connect)}


def app_headers(request: Request, allowed: Sequence[str]) -> dict[str, str]:
    """Return what the frame of an app may do. The query has the domains that the app names."""
    sources = {
        kind: "".join(f" {domain}" for domain in request.query_params.getlist(kind) if is_allowed(domain, allowed))
        for kind in ("connect", "resource")
    }
    headers = {**SECURITY_HEADERS, "Content-Security-Policy": APP_POLICY.format(**sources)}
    del headers["X-Frame-Options"]
    return headers


def is_allowed(domain: str, allowed: Sequence[str]) -> bool:
    """Return True if the operator allows the domain, itself or by a pattern such as ``https://*.tiles.example``."""
    return DOMAIN.fullmatch(domain) is not None and any(fnmatchcase(domain.lower(), each) for each in allowed)


def respond(asset: Asset, request: Request, permissions: Mapping[str, str]) -> Response:
    """Answer with the file, compressed if the browser takes it, or with 304 if it has it."""
    headers = {
        **permissions,
        "Cache-Control": asset.cache_control,
        "ETag": asset.etag,
        "Vary": "Accept-Encoding",
    }
    if asset.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=NOT_MODIFIED, headers=headers)
    if asset.compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(asset.compressed, headers=headers, media_type=asset.media_type)
    return Response(asset.body, headers=headers, media_type=asset.media_type)
