"""What lasts: streams and sockets, served when routing is through with their requests.

Rule: whatever stands around an endpoint stands as long as the endpoint runs, which for a stream is long: six frames, an
exit stack and a call more for each write, 3 KB of a stream. So an endpoint only leaves here what lasts. Middleware that
is added to the application stands around this, and sees all of a stream; where there is none, it is served further out,
and FastAPI's own layers do not outlast their request either (decision 0038).
"""

from starlette.types import ASGIApp, Receive, Scope, Send

LEFT = "agui.lasting"
"""Its key in the scope."""

CLOSED = "fastapi_middleware_astack"
"""Of a stack that FastAPI has put there and closed, which takes 850 bytes."""


def leave(scope: Scope, lasting: ASGIApp) -> None:
    """Have it served behind the endpoint, which sends nothing itself."""
    scope[LEFT] = lasting


def left(scope: Scope) -> ASGIApp | None:
    """What is to be served now, if anything was left."""
    scope.pop(CLOSED, None)
    lasting: ASGIApp | None = scope.pop(LEFT, None)
    return lasting


class Lasting:
    """ASGI middleware around the routes: serves what an endpoint has left, unless somebody further out does."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or serve one socket. Raises what either raises."""
        await self.app(scope, receive, send)
        # The scope's own application, not one around it: what is mounted may have middleware of its own.
        if not getattr(scope.get("app"), "is_bare", False) and (lasting := left(scope)) is not None:
            await lasting(scope, receive, send)
