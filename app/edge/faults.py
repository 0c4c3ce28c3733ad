"""What nothing else has handled: answered outermost, and raised on for the server to log.

Rule: it stands around requests, not around what is sent. Starlette's own layer has a function around each send to see
whether a response has begun, which is felt for each token of a stream. Whoever serves refuses to begin a second one.
"""

import contextlib

from starlette.middleware.errors import ServerErrorMiddleware
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.edge.lasting import LEFT, Lasting, left
from app.edge.refusal import on_error
from app.framework import FastAPI


class Faults:
    """ASGI middleware in the place of ``ServerErrorMiddleware``.

    Args:
        serves: whether what lasts is served here, with nothing else around it.
    """

    def __init__(self, app: ASGIApp, *, serves: bool) -> None:
        self.app = app
        self._serves = serves

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or serve one socket. Raises what either raises."""
        try:
            if self._serves:
                scope[LEFT] = None
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
    """FastAPI with this layer in the place of Starlette's. That stays where it has another handler than ours."""

    @property
    def _is_bare(self) -> bool:
        """Whether nobody has added any middleware around ours."""
        outermost: object = self.user_middleware[0].cls
        return outermost is Lasting

    def build_middleware_stack(self) -> ASGIApp:
        """All that stands around the routes."""
        stack = super().build_middleware_stack()
        if isinstance(stack, ServerErrorMiddleware) and stack.handler is on_error and not stack.debug:
            return Faults(stack.app, serves=self._is_bare)
        return stack
