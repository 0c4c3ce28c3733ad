"""HTTP responses for requests and WebSocket handshakes that fail before a run exists.

Rule: the body is one RUN_ERROR event, the same for every code and route, as AgentCore's contract demands. A protocol
has JSON of its own below its prefix. The client gets the message of the ``AppError``; everything else is in the log
under the same request id.

``CallerMiddleware`` puts the form of the body into ``request.state``, and the status if it is not that of the error
table: with ``AGUI_ERROR_STATUS=stream``, because AgentCore would replace the body.

Source: AG-UI spec 1.1, basic/transports/http-sse, "Errors".
"""

import logging

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agui_container.log_values import format_fields
from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import AppError, ErrorCode, run_error, validation_error
from agui_container.web.formats import EVENT_STREAM, sse_error_frame

DENIAL_EXTENSION = "websocket.http.response"
"""Extension of ASGI by which a handshake is refused with a response."""

logger = logging.getLogger(__name__)


def error_response(error: AppError, request: HTTPConnection, *, status: int | None = None) -> Response:
    """Return the response for an error. ``status`` replaces that of the error table."""
    logger.info("request refused %s", format_fields({"code": error.code, "message": error.message}))
    request_id = request.state.caller.request_id
    headers = {"Cache-Control": "no-store", "X-Request-Id": request_id}
    if error.wait_seconds is not None:
        headers["Retry-After"] = str(error.wait_seconds)
    http_status = request.state.refused_status or status or error.code.http
    if (form := request.state.error_form) is not None:
        return Response(form(error), http_status, headers, media_type="application/json")
    body = sse_error_frame(encode(run_error(error, request_id)))
    return Response(body, http_status, headers, media_type=EVENT_STREAM)


async def send_refusal(error: AppError, response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a request or a WebSocket handshake. A server that can send no response to a handshake answers with 403."""
    if scope["type"] == "http" or DENIAL_EXTENSION in scope.get("extensions", {}):
        await response(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": error.code.ws_close, "reason": error.code})


async def on_error(request: Request, error: Exception) -> Response:
    """Return the response for an exception of any kind."""
    if isinstance(error, HTTPException):
        refusal = validation_error(f"{error.detail}.")
        response = error_response(refusal, request, status=error.status_code)
        response.headers.update(error.headers or {})
        return response
    return error_response(error if isinstance(error, AppError) else internal_error(), request)


def internal_error() -> AppError:
    return AppError(ErrorCode.INTERNAL_ERROR, "The server failed; its log has the cause.")
