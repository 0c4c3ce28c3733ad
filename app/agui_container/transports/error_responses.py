"""HTTP responses for requests and WebSocket handshakes that fail before a run exists.

Rule: the body is one RUN_ERROR event, the same for every code and route, as AgentCore's contract demands. A person in a
browser gets a page instead. The client gets the message of the ``AppError``; everything else is in the log under the
same request id.

The status is that of the error table, unless ``request.state`` has another one. ``CallerMiddleware`` puts it there with
``AGUI_ERROR_STATUS=stream``, because AgentCore would replace the body. A response with status 200 is a stream in the
requested format. A response with any other status is SSE, because clients show such a body as text.

Source: AG-UI spec 1.1, basic/transports/http-sse, "Errors".
"""

import logging
from html import escape
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import AppError, ErrorCode, run_error
from agui_container.runtime.log_values import format_fields
from agui_container.transports.formats import SseFormat, requested_format
from agui_container.transports.html_page import html_page, links, wants_page

SUCCESS = 200

DENIAL_EXTENSION = "websocket.http.response"
"""Extension of ASGI by which a handshake is refused with a response."""

TITLES: dict[int, str] = {
    HTTPStatus.NOT_FOUND: "There is nothing at this address",
    HTTPStatus.METHOD_NOT_ALLOWED: "This address is for programs",
    HTTPStatus.INTERNAL_SERVER_ERROR: "The server failed",
}
"""Titles of pages by status, where a status has one of its own."""

logger = logging.getLogger(__name__)


def error_response(error: AppError, request: HTTPConnection, *, status: int | None = None) -> Response:
    """Return the response for an error.

    Args:
        error: the error, with its code and message.
        request: the request, whose state ``CallerMiddleware`` has filled.
        status: HTTP status instead of the error table's, for example 405.
    """
    logger.info("request refused %s", format_fields({"code": error.code, "message": error.message}))
    request_id = request.state.caller.request_id
    headers = {"Cache-Control": "no-store", "Vary": "Accept", "X-Request-Id": request_id}
    if error.wait_seconds is not None:
        headers["Retry-After"] = str(error.wait_seconds)
    if wants_page(request):
        page = error_page(error, request, status or error.spec.http)
        page.headers.update(headers)
        return page
    http_status = request.state.refused_status or status or error.spec.http
    event_format = requested_format(request) if http_status == SUCCESS else SseFormat()
    body = event_format.error_body(encode(run_error(error, request_id)))
    return Response(body, http_status, headers, media_type=event_format.media_type)


async def send_refusal(error: AppError, response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a request or a WebSocket handshake. A server that can send no response to a handshake answers with 403."""
    if scope["type"] == "http" or DENIAL_EXTENSION in scope.get("extensions", {}):
        await response(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": error.spec.ws_close, "reason": error.code})


def error_page(error: AppError, request: HTTPConnection, status: int) -> Response:
    """Return the page for an error: the request, the message, and links to the pages that the server has."""
    title = TITLES.get(status, "The server refused this request")
    request_line = f"{request.scope['method']} {request.url.path}"
    body = (
        f"<p>You asked for <code>{escape(request_line)}</code>.</p><p>{escape(error.message)}</p>{links(request)}"
        f'<p class="small">Status {status}, {error.code}, request {request.state.caller.request_id}</p>'
    )
    return html_page(title, body, status=status)


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
