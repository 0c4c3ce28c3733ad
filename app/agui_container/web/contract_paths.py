"""The paths of AgentCore's contract, in front of FastAPI's router.

Rule: the routes themselves are FastAPI's, which lists them in the OpenAPI page. Here a request or handshake on one of
these paths meets its endpoint at once, inside the same middleware: Starlette's router, its handling of exceptions and
FastAPI's stack of exits make a twentieth of the calls of a short run. A traced request takes the router, which names
its span.
"""

from collections.abc import Iterable, Mapping

from opentelemetry import trace
from starlette.requests import Request
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from agui_container.protocol.errors import AppError
from agui_container.web.browser_policy import route_path
from agui_container.web.caller_middleware import INVOCATIONS, PING
from agui_container.web.error_responses import error_response
from agui_container.web.websocket import WS

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
