"""Answers of the small servers of commands: refusals, of other web pages among them."""

import json

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agui_container.protocol.errors import AppError
from agui_container.web.browser_policy import BrowserPolicy
from agui_container.web.error_responses import send_refusal

PAGES = BrowserPolicy((), ())


class OwnPagesOnly:
    """ASGI middleware that refuses requests of other web pages."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, or refuse it."""
        try:
            if scope["type"] != "lifespan":
                PAGES.check(HTTPConnection(scope).headers.items(), scope)
        except AppError as error:
            response = refusal(error.code, error.message, error.spec.http)
            await send_refusal(error, response, scope, receive, send)
        else:
            await self._app(scope, receive, send)


def refusal(code: str, message: str, status: int) -> Response:
    """Return an answer of one RUN_ERROR, as the agent's own server refuses."""
    event = {"type": "RUN_ERROR", "code": code, "message": message}
    return Response(f"data: {json.dumps(event)}\n\n", status, media_type="text/event-stream")
