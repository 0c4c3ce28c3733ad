"""The plain HTTP routes: health, capabilities and the caller's runs.

The routes of threads: each is a command of ``agui_container.protocol.commands`` written as a URL.

Rule: the path says more than the body, and the body more than the query.
"""

from collections.abc import Awaitable, Callable

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.protocol.parser import parse_command
from agui_container.transports.browser_policy import route_path
from agui_container.transports.caller_middleware import caller_of
from agui_container.transports.commands import CommandResponder
from agui_container.transports.raw_path_route import RawPathRoute
from agui_container.transports.request_body import parse_body_fields, read_body


def routes(service: Service) -> list[BaseRoute]:
    """The routes that answer at once."""

    async def ping(_: Request) -> Response:
        return JSONResponse(service.health.report())

    async def capabilities(_: Request) -> Response:
        return Response(service.capabilities.model_dump_json(by_alias=True), media_type="application/json")

    async def runs(request: Request) -> Response:
        return JSONResponse({"runs": await service.runs.list(caller_of(request))})

    async def run(request: Request) -> Response:
        return JSONResponse(await service.runs.find(*run_reference(request)))

    async def cancel(request: Request) -> Response:
        return JSONResponse(await service.runs.cancel(*run_reference(request)))

    return [
        Route("/ping", ping),
        Route("/capabilities", capabilities),
        Route("/runs", runs),
        RawPathRoute("/runs/{runId}", run),
        RawPathRoute("/runs/{runId}/cancel", cancel, methods=["POST"]),
    ]


def is_ping(scope: Scope) -> bool:
    """Whether this asks for health, as platforms do every other second: nothing to trace."""
    return "path" in scope and route_path(scope) == "/ping"


def run_reference(request: Request) -> tuple[Caller, str | None, str]:
    """Who asks for which run: the caller, a thread where one is named, the run."""
    return caller_of(request), request.query_params.get("threadId"), request.path_params["runId"]


NOT_KEPT = {"Cache-Control": "no-store"}
"""One address shows each caller something else, so nothing between may keep it."""


def thread_routes(service: Service, commands: CommandResponder, *, max_body: int) -> list[BaseRoute]:
    """Return the routes of threads. ``max_body`` bounds a body in bytes."""

    async def asked(request: Request, kind: str) -> dict[str, object]:
        """What the command gives."""
        body = await read_body(request, max_body, service) if request.method in {"POST", "PATCH"} else b""
        fields = {**request.query_params, **await parse_body_fields(body), **request.path_params, "type": kind}
        return await commands.answer(parse_command(fields), caller_of(request))

    def answers(kind: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            body = to_json(await asked(request, kind))  # a third of what the framework's own takes
            return Response(body, headers=NOT_KEPT, media_type="application/json")

        return answer

    async def transcript(request: Request) -> Response:
        result = await asked(request, "threads.transcript")
        return PlainTextResponse(str(result["transcript"]), headers=NOT_KEPT)

    thread = "/threads/{threadId}"
    return [
        RawPathRoute("/threads", answers("threads.list")),
        RawPathRoute(thread, answers("threads.get"), methods=["GET"]),
        RawPathRoute(thread, answers("threads.rename"), methods=["PATCH"]),
        RawPathRoute(thread, answers("threads.delete"), methods=["DELETE"]),
        RawPathRoute(f"{thread}/transcript", transcript),
        RawPathRoute(f"{thread}/delta", answers("threads.delta")),
        RawPathRoute(f"{thread}/fork", answers("threads.fork"), methods=["POST"]),
        RawPathRoute(f"{thread}/messages/{{messageId}}/feedback", answers("threads.feedback"), methods=["POST"]),
    ]
