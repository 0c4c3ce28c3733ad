"""The FastAPI application: its class, its description, the contract's paths, and uncaught exceptions.

Rule: FastAPI is imported here and nowhere else, with the models of its OpenAPI deferred. That saves a fifteenth of a
start, and pydantic builds them on first use. It is FastAPI's own class, which traces requests by itself
(docs/observability.md): the class that OpenTelemetry's instrumentation puts in its place makes a span for every write,
which is one for every token.

Rule: all routes are FastAPI's, which lists them in the OpenAPI page. A request or handshake on a path of the contract
meets its endpoint at once, inside the same middleware: Starlette's router, its handling of exceptions and FastAPI's
stack of exits make a twentieth of the calls of a short run. A traced request takes the router, which names its span.

Rule: the OpenAPI document is built at the first request for it. Its modules are imported then, in a thread, so that it
delays neither the start of the process nor a run.

Rule: an uncaught exception is answered by INTERNAL_ERROR and raised again, so that the server logs it. ``send`` is not
wrapped. Starlette's own layer wraps ``send`` to see whether a response has begun, but a stream can only write to its
connection directly if nothing wraps ``send``. The check is not needed, because servers refuse a second response.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opentelemetry import trace
from pydantic import BaseModel
from pydantic_core import to_json
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from agui_container.protocol.errors import AppError
from agui_container.threads import offload
from agui_container.web.browser_policy import route_path
from agui_container.web.caller_middleware import INVOCATIONS, PING
from agui_container.web.error_responses import error_response, on_error
from agui_container.web.websocket import WS

BaseModel.model_config["defer_build"] = True
try:
    from fastapi.applications import FastAPI
finally:
    del BaseModel.model_config["defer_build"]

__all__ = ["Application", "ContractPaths", "ErrorMiddleware", "FastAPI", "contract_endpoints"]


class ErrorMiddleware:
    """ASGI middleware that replaces Starlette's ``ServerErrorMiddleware``."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request or socket. An exception is answered over HTTP and raised again."""
        try:
            await self.app(scope, receive, send)
        except Exception as error:
            if scope["type"] == "http":
                response = await on_error(Request(scope), error)
                with contextlib.suppress(Exception):  # a response has begun, or the client is gone
                    await response(scope, receive, send)
            raise


class Application(FastAPI):
    """FastAPI with ``ErrorMiddleware`` in place of Starlette's layer, unless a program has added an own error handler.

    The layers are built for the first request, so middleware and exception handlers can be added until then.
    """

    cors_origins: Sequence[str] = ()

    def openapi(self) -> dict[str, Any]:
        from agui_container.web.openapi.document import make_document  # noqa: PLC0415 - built when asked for

        if self.openapi_schema is None:
            self.openapi_schema = make_document(self)
        return self.openapi_schema

    def build_middleware_stack(self) -> ASGIApp:
        """Build the layers around the routes. CORS is outermost, so that a page can read an INTERNAL_ERROR, too."""
        stack = self._build_layers()
        if not self.cors_origins:
            return stack
        return CORSMiddleware(
            stack,
            allow_origins=list(self.cors_origins),
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["*"],
            expose_headers=["X-Request-Id", "WWW-Authenticate", "Retry-After"],
        )

    def _build_layers(self) -> ASGIApp:
        stack = super().build_middleware_stack()
        if isinstance(stack, ServerErrorMiddleware) and stack.handler is on_error and not stack.debug:
            return ErrorMiddleware(stack.app)
        return stack


Endpoints = Mapping[tuple[str, str], ASGIApp]
"""Applications by method and path. A WebSocket has no method."""


def contract_endpoints(routes: Iterable[BaseRoute]) -> Endpoints:
    """Return the endpoints of the contract's routes."""
    found: dict[tuple[str, str], ASGIApp] = {}
    for route in routes:
        if isinstance(route, Route) and route.path in (INVOCATIONS, PING):
            found.update({(method, route.path): route.app for method in route.methods or ()})
        elif isinstance(route, WebSocketRoute) and route.path == WS:
            found["", WS] = route.app
    return found


class ContractPaths:
    """ASGI middleware behind ``CallerMiddleware``."""

    def __init__(self, app: ASGIApp, endpoints: Endpoints) -> None:
        self._app = app
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = None if "path" not in scope else self._endpoints.get((scope.get("method", ""), route_path(scope)))
        if endpoint is None or trace.get_current_span().is_recording():
            await self._app(scope, receive, send)
            return
        scope["path_params"] = {}
        try:
            await endpoint(scope, receive, send)
        except AppError as error:
            if scope["type"] != "http":
                raise
            await error_response(error, Request(scope))(scope, receive, send)


# --- the description --------------------------------------------------------------------------------------------------

NO_CACHE = {"Cache-Control": "no-cache"}
"""Headers of the answers. Another version of the server has another document."""


def description_routes(*, page: bool) -> list[BaseRoute]:
    """Return ``/openapi.json``, and with ``page`` FastAPI's own page, whose script is loaded from a public address."""

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
