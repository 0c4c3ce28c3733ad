"""How a refused request looks: an SSE body with one RUN_ERROR, and the status from the error table.

Rule: the body is the same for every code and route, as in AgentCore's contract; what a client is told is what
``AppError`` says, and the log has the rest under the same request id.
"""

import logging

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Send

from app.core.errors import AppError, Code
from app.core.wire import encode, sse_refusal
from app.engine.run import refusal

logger = logging.getLogger(__name__)


def refuse(error: AppError, request_id: str, *, status: int | None = None) -> Response:
    """The response that tells of ``error``; ``status`` replaces the table's."""
    logger.info("refused: %s %s", error.code, error.message)
    body = sse_refusal(encode(refusal(error, request_id)))
    headers = {"Cache-Control": "no-store", "X-Request-Id": request_id}
    return Response(body, status or error.row.http, headers, media_type="text/event-stream")


async def refuse_socket(error: AppError, send: Send) -> None:
    """Refuse a socket before it is accepted; the server answers the handshake with 403."""
    logger.info("refused: %s %s", error.code, error.message)
    await send({"type": "websocket.close", "code": error.row.ws_close, "reason": error.code})


async def on_app_error(request: Request, error: Exception) -> Response:
    """Exception handler for ``AppError``."""
    known = error if isinstance(error, AppError) else unexpected()
    return refuse(known, request.state.caller.request_id)


async def on_error(request: Request, _error: Exception) -> Response:
    """Exception handler for everything else; the framework logs the traceback."""
    return refuse(unexpected(), request.state.caller.request_id)


def unexpected() -> AppError:
    """What a client is told of a fault of ours."""
    return AppError(Code.INTERNAL_ERROR, "The server failed; its log has the cause.")
