"""The platform as an application: the routes of AgentCore's data plane, and errors that a test asks for."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import uvicorn
from pydantic import BaseModel, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from agui_container.aws.platform.data_plane import DataPlane, request_id_of
from agui_container.aws.platform.errors import PlatformError, PlatformRefusal, rest_error, run_error
from agui_container.aws.platform.options import PlatformOptions
from agui_container.server.protocol_classes import choose_http

RUNTIME = "/runtimes/{runtime:path}"
"""The ARN has a slash, which clients write as %2F."""

logger = logging.getLogger(__name__)


class NextError(BaseModel):
    """Body of ``POST /_platform/next-error``. AWS's clients try three times, so an error may come for ``count``."""

    code: str
    count: Annotated[int, Field(ge=1, le=100)] = 1


def build_platform(options: PlatformOptions) -> Starlette:
    """Build the platform. ``app.state.plane`` is its data plane. All containers end with the application's lifespan."""
    plane = DataPlane(options)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await plane.aclose()

    async def set_next_error(request: Request) -> Response:
        try:
            chosen = NextError.model_validate_json(await request.body())
            error = PlatformError[chosen.code]
        except (ValidationError, KeyError):
            codes = ", ".join(PlatformError.__members__)
            message = f'The body must be {{"code": …, "count": 1 to 100}} with one of {codes}.'
            return JSONResponse({"message": message}, 400)
        plane.script_error(error, chosen.count)
        return JSONResponse({"code": error.name, "count": chosen.count})

    routes = [
        Route(f"{RUNTIME}/invocations", plane.invoke, methods=["POST"]),
        WebSocketRoute(f"{RUNTIME}/ws", plane.connect),
        Route(f"{RUNTIME}/stopruntimesession", plane.stop, methods=["POST"]),
        Route("/_platform/next-error", set_next_error, methods=["POST"]),
    ]
    handlers: dict[Any, Any] = {PlatformRefusal: answer_refusal, Exception: answer_failure}  # Starlette's are narrower
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    app.state.plane = plane
    return app


async def answer_refusal(connection: Request | WebSocket, refusal: Exception) -> Response | None:
    """Answer in the form of the operation, and log the reason."""
    assert isinstance(refusal, PlatformRefusal)  # noqa: S101 - Starlette calls this for nothing else
    logger.info("request refused: %s %s", refusal.error.name, refusal.message)
    request_id = request_id_of(connection)
    if isinstance(connection, WebSocket):
        status = refusal.error.value.rest_status
        await connection.send_denial_response(run_error(refusal, request_id, status))
        return None
    is_invocation = connection.url.path.endswith("/invocations")
    return run_error(refusal, request_id) if is_invocation else rest_error(refusal, request_id)


async def answer_failure(request: Request, _: Exception) -> Response | None:
    """Answer for a mistake of the platform itself, which the server logs."""
    return await answer_refusal(request, PlatformRefusal(PlatformError.INTERNAL_ERROR))


def server_config(app: Starlette) -> uvicorn.Config:
    """Return uvicorn's configuration for the platform. uvicorn watches the size of the caller's frames."""
    return uvicorn.Config(
        app,
        http=choose_http(),
        log_config=None,
        access_log=False,
        server_header=False,
        ws_max_size=app.state.plane.options.limits.frame_bytes,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=1,
        lifespan="on",
    )
