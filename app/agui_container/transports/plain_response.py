"""HTTP responses that are not streams, such as a thread as JSON.

Rule: a large body counts as in flight until the client has read it. ``EventStreamResponse`` cannot send such a body,
because it reads a subscription. The server cuts off a client that does not read (``server/connections.py``).
"""

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agui_container.engine.admission.quota import Limit
from agui_container.protocol.errors import AppError
from agui_container.transports.caller_middleware import quota_of
from agui_container.transports.error_responses import error_response


class PlainResponse(Response):
    """Response with a complete body, which may be large."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, or RATE_LIMIT_EXCEEDED if too many bytes are unread already."""
        connection, body = HTTPConnection(scope), b"" if scope["method"] == "HEAD" else bytes(self.body)
        try:
            lease = quota_of(connection).acquire(Limit.BYTES_IN_FLIGHT, len(body))
        except AppError as error:
            await error_response(error, connection)(scope, receive, send)
            return
        with lease:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if lease.size:  # the end is sent when the client has taken the body, which counts until then
                await send({"type": "http.response.body", "body": body, "more_body": True})
                body = b""
            await send({"type": "http.response.body", "body": body})
