"""Errors of an agent for whoever writes it: in ``agui dev``, clients and the chat page get tracebacks.

Rule: only ``agui dev`` does so, because the text of an exception may hold secrets. Elsewhere it stays in the log.
"""

import socket

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agui_container.cli.own_pages import OwnPagesOnly, refusal
from agui_container.log_values import mask_passwords
from agui_container.protocol.errors import ERRORS, AppError, ErrorCode
from agui_container.run.terminal_events import describe_failure
from agui_container.run.user_code import format_exception

REFRESH = {"Refresh": "2"}
"""Lets a browser ask again, until the agent can be loaded."""

PATHS = "/{path:path}"


def with_traceback(error: BaseException) -> AppError:
    """Return what clients read of an exception of the agent, with its traceback."""
    described = describe_failure(error)
    if described.code is not ErrorCode.AGENT_ERROR or (described is error and error.__cause__ is None):
        return described  # a message that the agent has chosen
    return AppError(described.code, f"{described.message}\n\n{mask_passwords(format_exception(error))}")


def show_load_error(error: Exception, *, sockets: list[socket.socket]) -> None:
    """Answer every request with the error until SIGTERM: a browser by a page, a client by RUN_ERROR."""
    text = mask_passwords(f"{error}\n\n{format_exception(error)}")
    code = ErrorCode.AGENT_ERROR
    status = ERRORS[ErrorCode.INTERNAL_ERROR].http

    async def answer(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return PlainTextResponse(text, status, REFRESH)
        return refusal(code, text, status)

    routes = [Route(PATHS, answer, methods=["GET", "POST"])]
    app = Starlette(routes=routes, middleware=[Middleware(OwnPagesOnly)])
    config = uvicorn.Config(app, ws="none", log_config=None, access_log=False, timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets)
