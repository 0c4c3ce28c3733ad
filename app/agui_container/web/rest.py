"""HTTP routes of health, metrics, capabilities, and the caller's runs and threads.

Each route of a thread is a command of ``agui_core.commands``, written as a URL.

Rule: if a field is given more than once, the path overrides the body, and the body overrides the query.
"""

from collections.abc import Awaitable, Callable, Mapping

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from agui_container.engine.engine import Engine
from agui_container.engine.views import View
from agui_container.ports import Caller
from agui_container.protocol.parser import parse_command
from agui_container.web.browser_policy import route_path
from agui_container.web.caller_middleware import PING, caller_of
from agui_container.web.requests import (
    THREAD,
    THREAD_ROUTES,
    RawPathRoute,
    answer_command,
    encode_result,
    read_fields,
)

METRICS = "/metrics"
"""Path of the metrics of the whole process. They show nothing of a caller."""

Render = Callable[[str], tuple[bytes, str]]
"""Function that returns the body of the metrics and its content type for an ``Accept`` header."""

NO_STORE = {"Cache-Control": "no-store"}
"""Headers of a response that caches must not store, because the same URL shows each caller something else."""


def routes(service: Engine) -> list[BaseRoute]:
    async def ping(_: Request) -> Response:
        return JSONResponse(service.health.report())

    async def capabilities(_: Request) -> Response:
        return Response(service.capabilities.model_dump_json(by_alias=True), media_type="application/json")

    async def runs(request: Request) -> Response:
        return json_response({"runs": await service.runs.list(caller_of(request))})

    async def run(request: Request) -> Response:
        return json_response(await service.runs.find(*run_reference(request)))

    async def cancel(request: Request) -> Response:
        return json_response(await service.runs.cancel(*run_reference(request)))

    return [
        Route(PING, ping),
        Route("/capabilities", capabilities),
        Route("/runs", runs),
        RawPathRoute("/runs/{runId}", run),
        RawPathRoute("/runs/{runId}/cancel", cancel, methods=["POST"]),
    ]


def metrics_routes(render: Render) -> list[BaseRoute]:
    async def metrics(request: Request) -> Response:
        body, content_type = render(request.headers.get("accept", ""))
        return Response(body, headers={**NO_STORE, "Content-Type": content_type})

    return [Route(METRICS, metrics)]


def is_poll(scope: Scope) -> bool:
    """True for ``/ping`` and ``/metrics``. Both are asked for every few seconds, so they are not traced."""
    return "path" in scope and route_path(scope) in (PING, METRICS)


def json_response(document: Mapping[str, object]) -> Response:
    """Return a JSON object. ``to_json`` is faster than Starlette's ``JSONResponse``."""
    return Response(to_json(document), media_type="application/json")


def run_reference(request: Request) -> tuple[Caller, str | None, str]:
    return caller_of(request), request.query_params.get("threadId"), request.path_params["runId"]


def thread_routes(service: Engine, *, max_body: int) -> list[BaseRoute]:
    async def execute(request: Request, command_type: str) -> View:
        body: dict[str, object] = {}
        if request.method in {"POST", "PATCH"}:
            body, _ = await read_fields(request, max_body, service)
        fields = {**request.query_params, **body, **request.path_params, "type": command_type}
        return await answer_command(service, parse_command(fields), caller_of(request))

    def endpoint(command_type: str) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            body = await encode_result(await execute(request, command_type))
            return Response(body, headers=NO_STORE, media_type="application/json")

        return respond

    async def transcript(request: Request) -> Response:
        result = await execute(request, "threads.transcript")
        return Response(str(result["transcript"]), headers=NO_STORE, media_type="text/plain")

    return [
        *(RawPathRoute(path, endpoint(kind), methods=[method]) for path, method, kind in THREAD_ROUTES),
        RawPathRoute(f"{THREAD}/transcript", transcript),
    ]
