"""How a refused request looks: one RUN_ERROR, and the status from the error table.

Rule: the body is the same for every code and route, as in AgentCore's contract; what a client is told is what
``AppError`` says, and the log has the rest under the same request id. The gate has put the caller, and the status that
replaces the table's where AgentCore would hide the body, into the request's state. A refusal that comes as a success is
a stream, in the format that was asked for; with any other status it is SSE, because clients show such a body as text.
"""

import logging

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import Send

from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import AppError, ErrorCode, run_error
from agui_container.transports.formats import SseFormat, requested_format

SUCCESS = 200

logger = logging.getLogger(__name__)


def error_response(error: AppError, request: HTTPConnection, *, status: int | None = None) -> Response:
    """The response that tells of ``error``; ``status`` is for what HTTP itself has a status for."""
    logger.info("refused: %s %s", error.code, error.message)
    request_id = request.state.caller.request_id
    headers = {"Cache-Control": "no-store", "Vary": "Accept", "X-Request-Id": request_id}
    shown = request.state.refused_status or status or error.spec.http
    form = requested_format(request) if shown == SUCCESS else SseFormat()
    return Response(form.refusal(encode(run_error(error, request_id))), shown, headers, media_type=form.media_type)


async def reject_socket(error: AppError, send: Send) -> None:
    """Refuse a socket before it is accepted; the server answers the handshake with 403."""
    logger.info("refused: %s %s", error.code, error.message)
    await send({"type": "websocket.close", "code": error.spec.ws_close, "reason": error.code})


async def on_app_error(request: Request, error: Exception) -> Response:
    """Exception handler for ``AppError``."""
    return error_response(error if isinstance(error, AppError) else internal_error(), request)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Exception handler for what routing refuses: no such route, not this method."""
    if not isinstance(error, HTTPException):
        return error_response(internal_error(), request)
    response = error_response(
        AppError(ErrorCode.VALIDATION_ERROR, f"{error.detail}."), request, status=error.status_code
    )
    response.headers.update(error.headers or {})
    return response


async def on_error(request: Request, _error: Exception) -> Response:
    """Exception handler for everything else; the framework logs the traceback."""
    return error_response(internal_error(), request)


def internal_error() -> AppError:
    """What a client is told of a fault of ours."""
    return AppError(ErrorCode.INTERNAL_ERROR, "The server failed; its log has the cause.")
