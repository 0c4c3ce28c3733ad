"""A run as an HTTP response: written by one task, while the request's own waits for the client to leave.

Rule: what is ready goes out in one write, and only the writing task writes, so a comment never falls into an event. The
reader is closed however the response ends. Of sse-starlette's response this has the headers and the comments; it
writes by itself, because a cancel scope around each write and three tasks beside it cost more than everything else
that happens to an event (decision 0018).
"""

import asyncio
import logging
from functools import cache

from sse_starlette import EventSourceResponse
from starlette.types import Receive, Scope, Send

from app.core.errors import AppError
from app.edge.formats import Format
from app.edge.lookout import Lookout
from app.engine.reader import Reader

SEND_SECONDS = 60.0
"""A reader that takes nothing for so long is let go, because what it has not read yet is kept for it. It may come back
and read on."""

HEADERS = {"Cache-Control": "no-cache, no-transform", "Vary": "Accept", "X-Accel-Buffering": "no"}

logger = logging.getLogger(__name__)


class RunStream:
    """A run's events from a reader's position on.

    Args:
        reader: closed at the end.
        form: how events are written.
        request_id: told in a header.
        lookout: has the stream notice silence, which a comment breaks, and a write that is not taken, which ends it.
    """

    __slots__ = ("_form", "_limit", "_lookout", "_reader", "_request_id", "_since", "_writing")

    def __init__(self, reader: Reader, form: Format, request_id: str, lookout: Lookout) -> None:
        self._reader = reader
        self._form = form
        self._request_id = request_id
        self._lookout = lookout
        self._limit = asyncio.timeout(None)
        self._writing = False
        self._since = asyncio.get_running_loop().time()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the run ends or the client leaves."""
        if scope["method"] == "HEAD":
            self._reader.close()  # headers only
        self._lookout.watch(self)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._write(send), name="write a stream")
                while (await receive())["type"] != "http.disconnect":  # comes after the response's end, too
                    pass
                self._reader.close()
        except* TimeoutError:
            logger.info("a reader took nothing for %s s and is let go", SEND_SECONDS)
        finally:
            self._lookout.leave(self)
            self._reader.close()

    async def _write(self, send: Send) -> None:
        form, log, time = self._form, self._reader.run.log, asyncio.get_running_loop().time
        headers = [*head_of(form.media_type), (b"x-request-id", self._request_id.encode("latin-1"))]
        async with self._limit:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            try:
                async for batch in self._reader:
                    body = await form.body(log, batch) if batch.data else form.comment
                    self._writing, self._since = True, time()
                    await send({"type": "http.response.body", "body": body, "more_body": True})
                    self._writing = False
            except AppError as error:  # the stream ends here, the run does not: the client may read on later
                logger.warning("a reader is let go: %s", error.code)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def look(self, now: float) -> None:
        """Has nothing been written for long, or is a write not taken?"""
        silence = now - self._since
        if self._writing and silence >= SEND_SECONDS:
            self._writing = False
            self._limit.reschedule(now)
        elif not self._writing and silence >= self._lookout.keepalive and self._form.comment:
            self._reader.nudge()


@cache
def head_of(media_type: str) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of a stream, as sse-starlette has them."""
    return tuple(EventSourceResponse(iter(()), headers=HEADERS, media_type=media_type).raw_headers)
