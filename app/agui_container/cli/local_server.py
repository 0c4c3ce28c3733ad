"""The small servers of commands, for programs and pages of this machine.

Rule: requests of other web pages are refused. A port that is taken is one line for the person, before anything starts.
"""

import json
import socket
from collections.abc import Sequence

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Lifespan, Receive, Scope, Send

from agui_container.cli.failure import CommandFailed
from agui_container.protocol.errors import AppError
from agui_container.web.browser_policy import BrowserPolicy
from agui_container.web.error_responses import send_refusal

LOOPBACK = "127.0.0.1"
OWN_PAGES = BrowserPolicy((), ())


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Connections wait in it while the server starts. Raises ``CommandFailed``."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = str(error.strerror).partition(" (while ")[0]  # Python adds the address
        raise CommandFailed(f"cannot listen on {host}:{port}: {reason}. Port 0 takes a free one.") from None


def local_app(routes: Sequence[BaseRoute], lifespan: Lifespan[Starlette] | None = None) -> Starlette:
    return Starlette(routes=routes, middleware=[Middleware(own_pages_only)], lifespan=lifespan)


def local_server(app: ASGIApp) -> uvicorn.Server:
    config = uvicorn.Config(app, ws="websockets-sansio", log_config=None, access_log=False, timeout_graceful_shutdown=1)
    return uvicorn.Server(config)


def own_pages_only(app: ASGIApp) -> ASGIApp:
    """Wrap an application. Requests of other web pages are refused."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["type"] != "lifespan":
                OWN_PAGES.check(HTTPConnection(scope).headers.items(), scope)
        except AppError as error:
            response = refusal(error.code, error.message, error.code.http)
            await send_refusal(error, response, scope, receive, send)
        else:
            await app(scope, receive, send)

    return checked


def refusal(code: str, message: str, status: int) -> Response:
    """Return an answer of one RUN_ERROR, as the agent's own server refuses."""
    event = {"type": "RUN_ERROR", "code": code, "message": message}
    return Response(f"data: {json.dumps(event)}\n\n", status, media_type="text/event-stream")
