"""HTTP routes that return JSON: health, capabilities, and the caller's runs and threads.

Each route of a thread is a command of ``agui_container.protocol.commands``, written as a URL.

Rule: if a field is given more than once, the path overrides the body, and the body overrides the query.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from agui_container.engine.service import Service, View
from agui_container.ports import Caller
from agui_container.protocol.parser import parse_command
from agui_container.transports.caller_middleware import caller_of
from agui_container.transports.commands import CommandResponder, encode_result
from agui_container.transports.plain_response import PlainResponse
from agui_container.transports.raw_path_route import RawPathRoute
from agui_container.transports.request_body import read_fields

NO_STORE = {"Cache-Control": "no-store"}
"""Headers of a response that caches must not store, because the same URL shows each caller something else."""


def routes(service: Service) -> list[BaseRoute]:
    """Return the routes of health, capabilities and runs."""

    async def ping(_: Request) -> Response:
        return JSONResponse(service.health.report())

    async def capabilities(_: Request) -> Response:
        return PlainResponse(service.capabilities.model_dump_json(by_alias=True), media_type="application/json")

    async def runs(request: Request) -> Response:
        return json_response({"runs": await service.runs.list(caller_of(request))})

    async def run(request: Request) -> Response:
        return json_response(await service.runs.find(*run_reference(request)))

    async def cancel(request: Request) -> Response:
        return json_response(await service.runs.cancel(*run_reference(request)))

    return [
        Route("/ping", ping),
        Route("/capabilities", capabilities),
        Route("/runs", runs),
        RawPathRoute("/runs/{runId}", run),
        RawPathRoute("/runs/{runId}/cancel", cancel, methods=["POST"]),
    ]


def json_response(document: Mapping[str, object]) -> PlainResponse:
    """Return a JSON object. ``to_json`` is faster than Starlette's ``JSONResponse``."""
    return PlainResponse(to_json(document), media_type="application/json")


def run_reference(request: Request) -> tuple[Caller, str | None, str]:
    """Return the caller, the thread id if the query has one, and the run id."""
    return caller_of(request), request.query_params.get("threadId"), request.path_params["runId"]


def thread_routes(service: Service, commands: CommandResponder, *, max_body: int) -> list[BaseRoute]:
    """Return the routes of threads.

    Args:
        service: the engine.
        commands: answers to commands.
        max_body: largest request body, in bytes.
    """

    @asynccontextmanager
    async def execute(request: Request, command_type: str) -> AsyncIterator[View]:
        body: dict[str, object] = {}
        if request.method in {"POST", "PATCH"}:
            body, _ = await read_fields(request, max_body, service)
        fields = {**request.query_params, **body, **request.path_params, "type": command_type}
        async with commands.answer(parse_command(fields), caller_of(request)) as result:
            yield result

    def endpoint(command_type: str) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            async with execute(request, command_type) as result:
                body = await encode_result(result)
                return PlainResponse(body, headers=NO_STORE, media_type="application/json")

        return respond

    async def transcript(request: Request) -> Response:
        async with execute(request, "threads.transcript") as result:
            return PlainResponse(str(result["transcript"]), headers=NO_STORE, media_type="text/plain")

    thread = "/threads/{threadId}"
    return [
        RawPathRoute("/threads", endpoint("threads.list")),
        RawPathRoute(thread, endpoint("threads.get"), methods=["GET"]),
        RawPathRoute(thread, endpoint("threads.rename"), methods=["PATCH"]),
        RawPathRoute(thread, endpoint("threads.delete"), methods=["DELETE"]),
        RawPathRoute(f"{thread}/transcript", transcript),
        RawPathRoute(f"{thread}/delta", endpoint("threads.delta")),
        RawPathRoute(f"{thread}/fork", endpoint("threads.fork"), methods=["POST"]),
        RawPathRoute(f"{thread}/messages/{{messageId}}/feedback", endpoint("threads.feedback"), methods=["POST"]),
    ]
