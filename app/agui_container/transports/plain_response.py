"""HTTP responses that are not streams, such as a thread as JSON.

Rule: a large body counts as in flight until the client has taken it. A client that takes nothing for as long as a
stream's reader may is disconnected.
"""

import asyncio
import logging

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agui_container.protocol.errors import AppError
from agui_container.runtime.log_values import format_fields
from agui_container.transports.bytes_in_flight import SMALL_BYTES, share_of
from agui_container.transports.error_responses import error_response
from agui_container.transports.event_stream import SEND_SECONDS

SLICE_BYTES = 256_000
"""Bytes of one write. The client must take them within the time that a stream's reader has."""

logger = logging.getLogger(__name__)


class PlainResponse(Response):
    """Response with a complete body, which may be large."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, or RATE_LIMIT_EXCEEDED if too many bytes are unread already."""
        if len(self.body) <= SMALL_BYTES or scope["method"] == "HEAD":
            await super().__call__(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        try:
            reservation = share_of(connection).reserve(len(self.body))
        except AppError as error:
            await error_response(error, connection)(scope, receive, send)
            return
        with reservation:
            await self._send_large(send)

    async def _send_large(self, send: Send) -> None:
        """Send the body in slices. Each waits until the client has taken the one before."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for start in range(0, len(self.body) + SLICE_BYTES, SLICE_BYTES):
            body = self.body[start : start + SLICE_BYTES]
            limit = asyncio.timeout(SEND_SECONDS)
            try:
                async with limit:
                    await send({"type": "http.response.body", "body": body, "more_body": bool(body)})
            except TimeoutError:
                if not limit.expired():
                    raise
                fields = {"bytes": len(self.body), "idle_seconds": SEND_SECONDS}
                logger.info("slow reader disconnected %s", format_fields(fields))
                return
