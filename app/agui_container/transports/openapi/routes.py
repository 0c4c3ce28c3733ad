"""The routes ``/openapi.json`` and ``/docs``.

Rule: the document is built at the first request for it. Its modules are imported then, in a thread, so that
it delays neither the start of the process nor a run.
"""

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from agui_container.runtime.offload import offload
from agui_container.transports.html_page import PAGE_HEADERS, html_document
from agui_container.transports.plain_response import PlainResponse

NO_CACHE = {"Cache-Control": "no-cache"}
"""Headers of the answers. Another version of the server has another document."""


def routes() -> list[BaseRoute]:
    """Return the routes."""

    async def document(request: Request) -> Response:
        body = await offload("", _document, request)
        return PlainResponse(body, headers=NO_CACHE, media_type="application/json")

    async def page(request: Request) -> Response:
        body = await offload("", _page, request)
        return PlainResponse(body, headers={**PAGE_HEADERS, **NO_CACHE}, media_type="text/html")

    return [Route("/openapi.json", document), Route("/docs", page)]


def _document(request: Request) -> bytes:
    """Return the document as JSON. ``servers`` names the prefix under which the application is mounted."""
    document = request.app.openapi()
    prefix = request.scope.get("root_path", "")
    return to_json({**document, "servers": [{"url": prefix}]} if prefix else document)


def _page(request: Request) -> str:
    from agui_container.transports.openapi.page import render  # noqa: PLC0415 - built when asked for

    document = request.app.openapi()
    return html_document(f"{document['info']['title']}: HTTP API", render(document))
