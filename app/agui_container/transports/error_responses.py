"""HTTP responses and WebSocket rejections for requests that fail before a run exists.

Rule: the body is one RUN_ERROR event, the same for every code and route, as AgentCore's contract demands. The client
gets the message of the ``AppError``; everything else is in the log under the same request id.

The status is that of the error table, unless ``CallerMiddleware`` has put another one into ``request.state``, because
AgentCore would replace the body. A response with status 200 is a stream in the requested format. A response with any
other status is SSE, because clients show such a body as text.
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

RETRY_SECONDS = "1"
"""Value of ``Retry-After``: seconds after which a client that has exceeded a limit may try again."""

logger = logging.getLogger(__name__)


def error_response(error: AppError, request: HTTPConnection, *, status: int | None = None) -> Response:
    """Return the response for an error.

    Args:
        error: the error, with its code and message.
        request: the request, whose state ``CallerMiddleware`` has filled.
        status: HTTP status instead of the error table's, for example 405.
    """
    logger.info("request refused code=%s message=%s", error.code, error.message)
    request_id = request.state.caller.request_id
    headers = {"Cache-Control": "no-store", "Vary": "Accept", "X-Request-Id": request_id}
    if error.code is ErrorCode.RATE_LIMIT_EXCEEDED:
        headers["Retry-After"] = RETRY_SECONDS
    http_status = request.state.refused_status or status or error.spec.http
    event_format = requested_format(request) if http_status == SUCCESS else SseFormat()
    body = event_format.error_body(encode(run_error(error, request_id)))
    return Response(body, http_status, headers, media_type=event_format.media_type)


async def reject_socket(error: AppError, send: Send) -> None:
    """Reject a WebSocket before it is accepted. The server answers the handshake with 403."""
    logger.info("socket refused code=%s message=%s", error.code, error.message)
    await send({"type": "websocket.close", "code": error.spec.ws_close, "reason": error.code})


async def on_app_error(request: Request, error: Exception) -> Response:
    """Handle an ``AppError``."""
    return error_response(error if isinstance(error, AppError) else internal_error(), request)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Handle an ``HTTPException`` of the router: an unknown path, or a method that is not allowed."""
    if not isinstance(error, HTTPException):
        return error_response(internal_error(), request)
    response = error_response(
        AppError(ErrorCode.VALIDATION_ERROR, f"{error.detail}."), request, status=error.status_code
    )
    response.headers.update(error.headers or {})
    return response


async def on_error(request: Request, _error: Exception) -> Response:
    """Handle any other exception. The framework logs the traceback."""
    return error_response(internal_error(), request)


def internal_error() -> AppError:
    """Return the error for a fault of the server, without details of the cause."""
    return AppError(ErrorCode.INTERNAL_ERROR, "The server failed; its log has the cause.")
