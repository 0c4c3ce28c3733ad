"""What nothing else has handled: answered outermost, and raised on for the server to log.

Rule: it stands around requests, not around what is sent. Starlette's own layer has a function around each send to see
whether a response has begun, which is felt for each token of a stream. Whoever serves refuses to begin a second one.
"""

import contextlib
from collections.abc import Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.edge.lasting import Lasting, left
from app.edge.refusal import on_error
from app.framework import FastAPI


class Faults:
    """ASGI middleware in the place of ``ServerErrorMiddleware``; serves what lasts and was not served further in."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or serve one socket. Raises what either raises."""
        try:
            await self.app(scope, receive, send)
            if (lasting := left(scope)) is not None:
                await lasting(scope, receive, send)
        except Exception as error:
            if scope["type"] == "http":
                response = await on_error(Request(scope), error)
                with contextlib.suppress(Exception):  # one has begun, or nobody is there any more
                    await response(scope, receive, send)
            raise


class Application(FastAPI):
    """FastAPI with this layer in the place of Starlette's. That stays where it has another handler than ours.

    The layers are built for the first request, so middleware and exception handlers can be added until then.

    Attributes:
        cors_origins: web origins whose pages may read responses.
        is_bare: whether nobody has added middleware around ours, so that what lasts is served outside of it.
    """

    cors_origins: Sequence[str] = ()
    is_bare = False

    def build_middleware_stack(self) -> ASGIApp:
        """Build the layers around the routes. CORS is outermost, so that a page can read an INTERNAL_ERROR, too."""
        stack = self._build_layers()
        if not self.cors_origins:
            return stack
        return CORSMiddleware(
            stack,
            allow_origins=list(self.cors_origins),
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["*"],
            expose_headers=["X-Request-Id"],
        )

    def _build_layers(self) -> ASGIApp:
        stack, self.is_bare = super().build_middleware_stack(), False
        if isinstance(stack, ServerErrorMiddleware) and stack.handler is on_error and not stack.debug:
            outermost: object = self.user_middleware[0].cls
            self.is_bare = outermost is Lasting
            return Faults(stack.app)
        return stack
