"""The plain HTTP routes: health, capabilities and the caller's runs."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from app.edge.exact import ExactRoute
from app.edge.gate import caller_of
from app.engine.service import Service
from app.ports import Caller

NOT_READY = 503


def routes(service: Service) -> list[BaseRoute]:
    """The routes that answer at once."""

    async def ping(_: Request) -> Response:
        return JSONResponse(service.health.report(), 200 if service.health.ready else NOT_READY)

    async def capabilities(_: Request) -> Response:
        return Response(service.capabilities.model_dump_json(by_alias=True), media_type="application/json")

    async def runs(request: Request) -> Response:
        return JSONResponse({"runs": await service.runs.list(caller_of(request))})

    async def run(request: Request) -> Response:
        return JSONResponse(await service.runs.find(*named(request)))

    async def cancel(request: Request) -> Response:
        return JSONResponse(await service.runs.cancel(*named(request)))

    return [
        Route("/ping", ping),
        Route("/capabilities", capabilities),
        Route("/runs", runs),
        ExactRoute("/runs/{runId}", run),
        ExactRoute("/runs/{runId}/cancel", cancel, methods=["POST"]),
    ]


def is_ping(scope: Scope) -> bool:
    """Whether this asks for health, as platforms do every other second: nothing to trace."""
    return scope.get("path") == "/ping"


def named(request: Request) -> tuple[Caller, str | None, str]:
    """Who asks for which run: the caller, a thread where one is named, the run."""
    return caller_of(request), request.query_params.get("threadId"), request.path_params["runId"]
