"""The routes ``/openapi.json`` and ``/docs``.

Rule: the document is built at the first request for it. Its modules are imported then, in a thread, so that
it delays neither the start of the process nor a run.
"""

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from agui_container.threads import offload

NO_CACHE = {"Cache-Control": "no-cache"}
"""Headers of the answers. Another version of the server has another document."""


def routes(*, page: bool) -> list[BaseRoute]:
    """Return the routes. ``page`` is True for FastAPI's own page, whose script is loaded from a public address."""

    async def document(request: Request) -> Response:
        body = await offload(_document, request)
        return Response(body, headers=NO_CACHE, media_type="application/json")

    async def docs(request: Request) -> Response:
        return await offload(_page, request)

    return [Route("/openapi.json", document), *([Route("/docs", docs)] if page else ())]


def _document(request: Request) -> bytes:
    """``servers`` names the prefix under which the application is mounted."""
    document = request.app.openapi()
    prefix = request.scope.get("root_path", "")
    return to_json({**document, "servers": [{"url": prefix}]} if prefix else document)


def _page(request: Request) -> Response:
    from fastapi.openapi.docs import get_swagger_ui_html  # noqa: PLC0415 - most processes need none

    return get_swagger_ui_html(openapi_url="openapi.json", title=request.app.title)
