"""The streaming HTTP response of a run.

Rule: one write at a time, and one write for all events that are ready. The flusher pushes new events to the connection
if the connection accepts them at once. Otherwise the task of this response writes them, because only this task may
wait. The subscription is closed however the response ends.

Rule: a stream has no timer of its own for what takes seconds. One periodic check covers all streams of a process, so an
action that is due may happen up to two intervals late. Most streams are short, so a stream listens for the end of its
connection only after ``LISTEN_SECONDS``.
"""

import asyncio
import logging

from starlette.types import Receive, Scope, Send

from agui_container.log_values import format_fields
from agui_container.ports import Caller
from agui_container.protocol.envelope import Batch
from agui_container.protocol.errors import AppError
from agui_container.run.subscription import Subscription
from agui_container.web.direct_writes import direct_writer
from agui_container.web.formats import COMMENT, STREAM_HEADERS, needs_reduction, reduced, sse_frames

CHECK_SECONDS = 1.0
"""Longest interval between two checks."""


class StreamMonitor:
    """The open streams. ``keepalive`` are the seconds of silence before a comment; the interval is never longer."""

    def __init__(self, keepalive: float) -> None:
        self.keepalive = keepalive
        self._streams: set[EventStreamResponse] = set()
        self._scheduled_on: asyncio.AbstractEventLoop | None = None

    def add(self, stream: "EventStreamResponse") -> None:
        self._streams.add(stream)
        loop = asyncio.get_running_loop()
        if self._scheduled_on is not loop:  # an application may outlive an event loop that was closed
            self._schedule(loop)

    def remove(self, stream: "EventStreamResponse") -> None:
        self._streams.discard(stream)

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduled_on = loop
        loop.call_later(min(self.keepalive, CHECK_SECONDS), self._check)

    def _check(self) -> None:
        self._scheduled_on, loop = None, asyncio.get_running_loop()
        if self._streams:
            self._schedule(loop)
        now = loop.time()
        for stream in tuple(self._streams):
            stream.check(now)


LISTEN_SECONDS = 0.05
"""Seconds after which a stream begins to listen for the end of its connection."""

PUSHED_BYTES = 64_000
"""Largest batch, in bytes, that the flusher pushes. The task of the response sends a larger one."""

STALLED_SECONDS = 60.0
"""Seconds without progress after which a client that does not read is cut off, over every transport. Unread bytes use
memory. The client may reconnect and continue."""

LAST_BYTES = 16_000
"""Largest write, in bytes, that is sent together with the end of the response. A larger one is sent before the end,
because a server that shuts down does not wait for readers whose response has ended."""

logger = logging.getLogger(__name__)


class EventStreamResponse:
    """Response with the events of a run, from the position of a subscription."""

    def __init__(
        self, subscription: Subscription, caller: Caller, monitor: StreamMonitor, *, is_of_legacy_client: bool = False
    ) -> None:
        self._subscription = subscription
        self._is_of_legacy_client = is_of_legacy_client
        self._caller = caller
        self._monitor = monitor
        self._deadline = asyncio.timeout(None)
        self._listener: asyncio.Task[None] | None = None
        self._is_sending = self._has_written = self._is_slow = False
        self._last_write = asyncio.get_running_loop().time()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            self._subscription.close()  # headers only
        self._send, self._receive, self._write = send, receive, direct_writer(scope)
        self._monitor.add(self)
        listening = asyncio.get_running_loop().call_later(LISTEN_SECONDS, self._listen)
        try:
            async with self._deadline:
                await self._write_all()
        except TimeoutError:
            if not self._deadline.expired():
                raise
            if self._is_slow:
                logger.info(
                    "slow reader disconnected %s", format_fields({"run": self._run_id, "idle_seconds": STALLED_SECONDS})
                )
        finally:
            self._monitor.remove(self)
            self._subscription.close()
            listening.cancel()
            if self._listener is not None:
                self._listener.cancel()
                await asyncio.wait([self._listener])

    @property
    def _run_id(self) -> str:
        return self._subscription.run.key.run_id

    def _listen(self) -> None:
        self._listener = asyncio.create_task(self._stop_at_disconnect(), name="wait for disconnect")

    async def _stop_at_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._subscription.close()
        if self._is_sending:
            self._expire()

    def _expire(self) -> None:
        if not self._deadline.expired():  # middleware may need time to end a cancelled write
            self._deadline.reschedule(asyncio.get_running_loop().time())

    async def _write_all(self) -> None:
        headers = [*STREAM_HEADERS, (b"x-request-id", self._caller.request_id.encode("latin-1"))]
        await self._send_message({"type": "http.response.start", "status": 200, "headers": headers})
        self._subscription.push_to(self._push)
        is_complete = False
        try:
            async for batch in self._subscription:
                body = await self._body(batch)
                is_complete = self._subscription.is_exhausted and len(body) <= LAST_BYTES
                del batch  # the write may take long
                await self._send_body(body, more=not is_complete)
        except AppError as error:  # the stream ends, but the run continues and the client may reconnect
            logger.warning("stream ended %s", format_fields({"run": self._run_id, "code": error.code}))
        if not is_complete:
            await self._send_body(b"", more=False)

    async def _body(self, batch: Batch) -> bytes:
        if not batch.data:
            return COMMENT
        if self._is_of_legacy_client:
            batch = await reduced(batch)
        return sse_frames(batch.data, batch.first)

    def _push(self, batch: Batch) -> bool:
        if self._write is None or (self._is_of_legacy_client and needs_reduction(batch)):
            return False
        body = sse_frames(batch.data, batch.first)
        self._has_written = len(body) <= PUSHED_BYTES and self._write(body)
        return self._has_written

    async def _send_body(self, body: bytes, *, more: bool) -> None:
        await self._send_message({"type": "http.response.body", "body": body, "more_body": more})
        if len(body) > PUSHED_BYTES:  # wait until the client has taken it
            await self._send_message({"type": "http.response.body", "body": b"", "more_body": more})

    async def _send_message(self, message: dict[str, object]) -> None:
        self._is_sending, self._last_write = True, asyncio.get_running_loop().time()
        await self._send(message)
        self._is_sending, self._has_written = False, True

    def check(self, now: float) -> None:
        """Send a comment after a long silence, and disconnect a slow reader."""
        if self._has_written:
            self._has_written, self._last_write = False, now
        idle = now - self._last_write
        if self._is_sending and idle >= STALLED_SECONDS:
            self._is_slow = True
            self._expire()
        elif not self._is_sending and idle >= self._monitor.keepalive:
            self._subscription.interrupt()
