"""HTTP responses that are not streams, such as a thread as JSON.

Rule: a large body counts as in flight until the client has read it. A client that does not read for as long as a
stream's reader may is disconnected. ``EventStreamResponse`` cannot send such a body, because it reads a subscription.
"""

import asyncio
import logging

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agui_container.engine.admission.quota import SMALL_BYTES
from agui_container.protocol.errors import AppError
from agui_container.runtime.log_values import format_fields
from agui_container.transports.caller_middleware import response_lease
from agui_container.transports.error_responses import error_response
from agui_container.transports.event_stream import SEND_SECONDS

SLICE_BYTES = 256_000
"""Bytes of one write. The client must take them within the time that a stream's reader has."""

logger = logging.getLogger(__name__)


class PlainResponse(Response):
    """Response with a complete body, which may be large."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, or RATE_LIMIT_EXCEEDED if too many bytes are unread already."""
        connection, body = HTTPConnection(scope), b"" if scope["method"] == "HEAD" else bytes(self.body)
        try:
            response_lease(connection).resize(len(body))
        except AppError as error:
            await error_response(error, connection)(scope, receive, send)
            return
        limit = asyncio.timeout(SEND_SECONDS)
        try:
            async with limit:
                await self._send(body, send, limit)
        except TimeoutError:
            if not limit.expired():
                raise
            fields = {"bytes": len(body), "idle_seconds": SEND_SECONDS}
            logger.info("slow reader disconnected %s", format_fields(fields))

    async def _send(self, body: bytes, send: Send, limit: asyncio.Timeout) -> None:
        """Send the body, a large one in slices. Each message waits until the client has taken the one before."""
        loop = asyncio.get_running_loop()
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        is_large = len(body) > SMALL_BYTES
        for start in range(0, len(body) if is_large else 0, SLICE_BYTES):
            limit.reschedule(loop.time() + SEND_SECONDS)
            await send({"type": "http.response.body", "body": body[start : start + SLICE_BYTES], "more_body": True})
        limit.reschedule(loop.time() + SEND_SECONDS)
        await send({"type": "http.response.body", "body": b"" if is_large else body})
