"""A run as an HTTP response: written by one task, while the request's own waits for the client to leave.

Rule: what is ready goes out in one write, and only the writing task writes, so a comment never falls into an event. The
reader is closed however the response ends. Of sse-starlette's response this keeps the headers and the comments; it
writes by itself, because a cancel scope around each write and three tasks beside it cost more than everything else
that happens to an event (decision 0018).
"""

import asyncio
import logging

from sse_starlette import EventSourceResponse
from starlette.types import Receive, Scope, Send

from app.core.errors import AppError
from app.edge.formats import Format
from app.engine.reader import Reader

SEND_SECONDS = 60.0
"""A reader that takes nothing for so long is let go, because what it has not read yet is kept for it. It may come back
and read on."""

HEADERS = {"Cache-Control": "no-cache, no-transform", "Vary": "Accept", "X-Accel-Buffering": "no"}

logger = logging.getLogger(__name__)


class RunStream(EventSourceResponse):
    """A run's events from a reader's position on.

    Args:
        reader: closed at the end.
        form: how events are written.
        keepalive: seconds of silence before a comment, where the format has one.
    """

    def __init__(self, reader: Reader, form: Format, request_id: str, keepalive: float) -> None:
        headers = {**HEADERS, "X-Request-Id": request_id}
        super().__init__(aiter(reader), headers=headers, media_type=form.media_type)
        self._reader = reader
        self._form = form
        self._keepalive = keepalive
        self._limit = asyncio.timeout(None)
        self._writing = False
        self._since = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the run ends or the client leaves."""
        if scope["method"] == "HEAD":
            self._reader.close()  # headers only
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._write(send), name="write a stream")
                while (await receive())["type"] != "http.disconnect":  # comes after the response's end, too
                    pass
                self._reader.close()
        except* TimeoutError:
            logger.info("a reader took nothing for %s s and is let go", SEND_SECONDS)
        finally:
            self._reader.close()

    async def _write(self, send: Send) -> None:
        self._loop = asyncio.get_running_loop()
        self._since = self._loop.time()
        self._look()
        try:
            async with self._limit:
                await self._send(send)
        finally:
            self._timer.cancel()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        form, log, time = self._form, self._reader.run.log, self._loop.time
        try:
            async for batch in self._reader:
                body = await form.body(log, batch) if batch.data else form.comment
                self._writing, self._since = True, time()
                await send({"type": "http.response.body", "body": body, "more_body": True})
                self._writing = False
        except AppError as error:  # the stream ends here, the run does not: the client may read on later
            logger.warning("a reader is let go: %s", error.code)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _look(self) -> None:
        """How long has nothing been written, or has a write not been taken?"""
        silence = self._loop.time() - self._since
        if self._writing and silence >= SEND_SECONDS:
            self._limit.reschedule(self._loop.time())
        elif not self._writing and silence >= self._keepalive and self._form.comment:
            self._reader.nudge()
        pause = self._keepalive - silence if silence < self._keepalive else self._keepalive
        self._timer = self._loop.call_later(min(pause, SEND_SECONDS), self._look)
