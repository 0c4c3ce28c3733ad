"""The routes of the chat page: ``/`` and the files under ``/console``.

Rule: the page loads nothing but its own files and runs no inline script, so text of a model cannot run even if it got
past the sanitizer. No cookie is set. Addresses in the page are relative, so it works behind any path prefix.

Diagrams are drawn by a large library, so they have a page of their own, which the chat page shows in frames. It is a
sandbox without an origin and without a network, and its one script is inside, because this server gives nothing to a
page without an origin.
"""

from collections.abc import Mapping
from functools import cache

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from agui_container.transports.console.assets import Asset, load_assets
from agui_container.transports.console.options import ConsoleOptions, origin_of
from agui_container.transports.html_page import SECURITY_HEADERS
from agui_container.transports.plain_response import PlainResponse

NOT_MODIFIED = 304
NOT_FOUND = 404

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src {connect}; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

DIAGRAM_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src {script}; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


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
        return respond(asset, request, diagram_headers(asset) if asset.name == "diagram.html" else page_headers())

    return [Route("/", page), Route("/console/{name:path}", file)]


def page_headers(connect: str = "'self'") -> dict[str, str]:
    """Return what the page may do. ``connect`` has the servers with which it may connect."""
    return {**SECURITY_HEADERS, "Content-Security-Policy": CONTENT_SECURITY_POLICY.format(connect=connect)}


def diagram_headers(asset: Asset) -> dict[str, str]:
    """Return what the page of a diagram may do, in a frame of this server's page and nowhere else."""
    policy = DIAGRAM_POLICY.format(script=asset.script_source)
    return {**SECURITY_HEADERS, "X-Frame-Options": "SAMEORIGIN", "Content-Security-Policy": policy}


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
        return PlainResponse(asset.compressed, headers=headers, media_type=asset.media_type)
    return PlainResponse(asset.body, headers=headers, media_type=asset.media_type)
