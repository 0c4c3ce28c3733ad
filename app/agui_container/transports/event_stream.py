"""A run as an HTTP response.

Rule: one write at a time, and one write for all that is ready. New events are pushed to the connection by the flusher
if it takes them at once; else this response's own task writes them, where waiting harms nobody. The subscription is
closed however the response ends.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Protocol

from starlette.types import Receive, Scope, Send

from agui_container.engine.log.subscription import Subscription
from agui_container.protocol.errors import AppError
from agui_container.protocol.wire.envelope import Batch
from agui_container.transports.caller_middleware import OUTER_SEND
from agui_container.transports.formats import Format
from agui_container.transports.stream_monitor import StreamMonitor

SEND_SECONDS = 60.0
"""A reader that takes nothing for so long is disconnected, because unread bytes are kept for it. It may come back and
read on."""

LAST_BYTES = 16_000
"""Up to this size the last events leave together with the response's end. A larger write must be taken first, because
with the end a server that stops counts the reader as gone."""

logger = logging.getLogger(__name__)


class ChunkConnection(Protocol):
    """Our server's connection, under ``agui.connection`` in the scope's extensions."""

    def write_chunk(self, send: Send, body: bytes) -> bool:
        """Write a chunk at once, or return False: ``send`` is not its own, or it takes nothing now."""


class EventStreamResponse:
    """The events of a run from a subscription's position on.

    Args:
        subscription: closed at the end.
        form: how events are written.
        request_id: told in a header.
        monitor: lets the stream notice silence, which a comment breaks, and a write that is not taken, which ends it.
    """

    def __init__(self, subscription: Subscription, form: Format, request_id: str, monitor: StreamMonitor) -> None:
        self._subscription = subscription
        self._form = form
        self._request_id = request_id
        self._monitor = monitor
        self._deadline = asyncio.timeout(None)
        self._is_sending = self._has_written = self._is_slow = False
        self._last_write = asyncio.get_running_loop().time()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the run ends or the client leaves. Raises what ``send`` raises."""
        if scope["method"] == "HEAD":
            self._subscription.close()  # headers only
        self._send, self._write_chunk = send, chunk_writer(scope)
        self._monitor.add(self)
        listener = asyncio.create_task(self._stop_at_disconnect(receive), name="wait for disconnect")
        try:
            async with self._deadline:
                await self._write_all()
        except TimeoutError:
            if not self._deadline.expired():
                raise
            if self._is_slow:
                logger.info("slow reader disconnected run=%s idle_seconds=%d", self._run_id, SEND_SECONDS)
        finally:
            self._monitor.remove(self)
            self._subscription.close()
            listener.cancel()
            await asyncio.wait([listener])

    @property
    def _run_id(self) -> str:
        return self._subscription.run.key.run_id

    async def _stop_at_disconnect(self, receive: Receive) -> None:
        """Close the subscription once the client has left. A read from the store in progress is not cut off."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._subscription.close()
        if self._is_sending:
            self._expire()

    def _expire(self) -> None:
        if not self._deadline.expired():  # middleware may end a cancelled write slowly
            self._deadline.reschedule(asyncio.get_running_loop().time())

    async def _write_all(self) -> None:
        headers = [*self._form.head, (b"x-request-id", self._request_id.encode("latin-1"))]
        await self._send_message({"type": "http.response.start", "status": 200, "headers": headers})
        self._subscription.push_to(self._push)
        is_complete = False
        try:
            async for batch in self._subscription:
                body = await self._body(batch)
                is_complete = self._subscription.is_exhausted and len(body) <= LAST_BYTES
                del batch  # the write may take long
                await self._send_body(body, more=not is_complete)
        except AppError as error:  # the stream ends here, the run does not: the client may read on later
            logger.warning("stream ended run=%s code=%s", self._run_id, error.code)
        if not is_complete:
            await self._send_body(b"", more=False)

    async def _body(self, batch: Batch) -> bytes:
        return await self._form.body(self._subscription.run.log, batch) if batch.data else self._form.comment

    def _push(self, batch: Batch) -> bool:
        """Write a batch at once if the connection takes it."""
        if self._write_chunk is None:
            return False
        try:
            body = self._form.body_now(batch)
            self._has_written = body is not None and self._write_chunk(body)
        except Exception:  # noqa: BLE001 - this response's task meets the same failure, and may raise it
            return False
        return self._has_written

    async def _send_body(self, body: bytes, *, more: bool) -> None:
        await self._send_message({"type": "http.response.body", "body": body, "more_body": more})

    async def _send_message(self, message: dict[str, object]) -> None:
        self._is_sending, self._last_write = True, asyncio.get_running_loop().time()
        await self._send(message)
        self._is_sending, self._has_written = False, True

    def check(self, now: float) -> None:
        """Break a long silence with a comment; give up on a reader that takes nothing."""
        if self._has_written:
            self._has_written, self._last_write = False, now
        idle = now - self._last_write
        if self._is_sending and idle >= SEND_SECONDS:
            self._is_slow = True
            self._expire()
        elif not self._is_sending and idle >= self._monitor.keepalive and self._form.comment:
            self._subscription.interrupt()


def chunk_writer(scope: Scope) -> Callable[[bytes], bool] | None:
    """The direct way to the connection; None under other servers.

    Between ``CallerMiddleware`` and the response there is only Starlette's own handling of exceptions, which passes
    chunks on as they are. So the way is open if nothing stands between that middleware and the connection, which
    ``write_chunk`` checks.
    """
    connection: ChunkConnection | None = scope.get("extensions", {}).get("agui.connection")
    send: Send | None = scope.get("state", {}).get(OUTER_SEND)
    return None if connection is None or send is None else partial(connection.write_chunk, send)
