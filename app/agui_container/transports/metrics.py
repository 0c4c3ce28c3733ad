"""The route ``/metrics`` for Prometheus.

Rule: it exists only if ``AGUI_METRICS`` is on. It shows counts of the whole process and nothing of a caller; where
callers need a token, Prometheus needs one, too.
"""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from agui_container.transports.browser_policy import route_path
from agui_container.transports.caller_middleware import PING
from agui_container.transports.plain_response import PlainResponse

PATH = "/metrics"

Render = Callable[[str], tuple[bytes, str]]
"""Function that returns the body and the content type for an ``Accept`` header."""


def routes(render: Render) -> list[BaseRoute]:
    """Return the route. ``render`` makes the body."""

    async def metrics(request: Request) -> Response:
        body, content_type = render(request.headers.get("accept", ""))
        return PlainResponse(body, headers={"Cache-Control": "no-store", "Content-Type": content_type})

    return [Route(PATH, metrics)]


def is_poll(scope: Scope) -> bool:
    """True for ``/ping`` and ``/metrics``. Both are asked for every few seconds, so they are not traced."""
    return "path" in scope and route_path(scope) in (PING, PATH)
