"""The plain HTTP routes: health, capabilities and the caller's runs (design 4.2)."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.edge.gate import caller_of
from app.engine.service import Service, summary
from app.ports import Caller

NOT_READY = 503


def routes(service: Service) -> APIRouter:
    """The routes that answer at once."""
    router = APIRouter()

    @router.get("/ping")
    async def ping() -> Response:
        return JSONResponse(service.health.report(), 200 if service.health.ready else NOT_READY)

    @router.get("/capabilities")
    async def capabilities() -> Response:
        return Response(service.capabilities.model_dump_json(by_alias=True), media_type="application/json")

    @router.get("/runs")
    async def runs(request: Request) -> Response:
        return JSONResponse({"runs": service.list(caller_of(request))})

    @router.get("/runs/{run_id:path}")
    async def run(request: Request) -> Response:
        return JSONResponse(summary(service.find(*_run_of(request))))

    @router.post("/runs/{run_id:path}/cancel")
    async def cancel(request: Request) -> Response:
        return JSONResponse(service.cancel(*_run_of(request)))

    return router


def _run_of(request: Request) -> tuple[Caller, str | None, str]:
    """Who asks for which run."""
    return caller_of(request), request.query_params.get("threadId"), request.path_params["run_id"]
