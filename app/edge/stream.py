"""A run as an HTTP response: one write at a time, while a task beside it waits for the client to leave.

Rule: what is ready goes out in one write. While the request's task waits for news, whoever brings them writes in its
place: a lone event costs no switch of tasks, and one that cannot be written at once is finished by the request's task,
so there is one write at a time (decision 0026). The reader is closed however the response ends. Of sse-starlette's
response this has the headers and the comments; it writes by itself, because a cancel scope around each write and three
tasks beside it cost more than everything else that happens to an event (decision 0018).
"""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from contextvars import copy_context
from functools import cache
from types import CoroutineType

from sse_starlette import EventSourceResponse
from starlette.types import Receive, Scope, Send

from app.core.errors import AppError
from app.edge.formats import Format
from app.edge.lookout import Lookout
from app.engine.pauses import Stepwise
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

    __slots__ = (
        "_context",
        "_form",
        "_frames",
        "_limit",
        "_lookout",
        "_reader",
        "_request_id",
        "_rest",
        "_send",
        "_since",
        "_writing",
        "_wrote",
    )

    def __init__(self, reader: Reader, form: Format, request_id: str, lookout: Lookout) -> None:
        self._reader = reader
        self._form = form
        self._frames = form.frames
        self._request_id = request_id
        self._lookout = lookout
        self._limit = asyncio.timeout(None)
        self._rest: Awaitable[None] | None = None
        self._writing = self._wrote = False
        self._since = asyncio.get_running_loop().time()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the run ends or the client leaves."""
        if scope["method"] == "HEAD":
            self._reader.close()  # headers only
        self._send = send
        self._context = copy_context()
        self._lookout.watch(self)
        leaving = asyncio.create_task(self._until_left(receive), name="wait for a client to leave")
        try:
            await Stepwise(self._write(), self._context.run)
            await leaving
        except TimeoutError:
            logger.info("a reader took nothing for %s s and is let go", SEND_SECONDS)
        finally:
            self._lookout.leave(self)
            self._reader.close()
            if leaving.cancel():
                await asyncio.wait([leaving])

    async def _until_left(self, receive: Receive) -> None:
        """Until the client has left, which is heard after the response's end, too."""
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            self._reader.close()

    async def _write(self) -> None:
        form, log, time = self._form, self._reader.run.log, asyncio.get_running_loop().time
        headers = [*head_of(form.media_type), (b"x-request-id", self._request_id.encode("latin-1"))]
        async with self._limit:
            self._writing = True
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            self._writing = False
            self._reader.offer(self)
            try:
                async for batch in self._reader:
                    rest, self._rest = self._rest, None
                    if rest is None:
                        body = await form.body(log, batch) if batch.data else form.comment
                        self._writing, self._since = True, time()
                        rest = self._send({"type": "http.response.body", "body": body, "more_body": True})
                        del body
                    del batch  # the next one may be long in coming, or be taken at once
                    await rest
                    del rest
                    self._writing, self._wrote = False, True
            except AppError as error:  # the stream ends here, the run does not: the client may read on later
                logger.warning("a reader is let go: %s", error.code)
            self._writing, self._since = True, time()
            if self._rest is not None:  # the reader was closed while a write had to wait
                await self._rest
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
            self._writing = False

    def take(self, data: Sequence[bytes], first: int) -> bool:
        """Write while the request's task waits, in whoever's task this is; what has to wait that task finishes."""
        frames, send = self._frames, self._send  # called by name: a method of a slot is looked up each time
        try:
            body = frames(data, first)
            if body is None:
                return False
            sending = send({"type": "http.response.body", "body": body, "more_body": True})
            work = sending if isinstance(sending, CoroutineType) else sending.__await__()
            waits_for = self._context.run(work.send, None)
        except StopIteration:
            self._wrote = True
            return True
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - not for the agent, whose task this may be
            self._rest = asyncio.get_running_loop().create_future()
            self._rest.set_exception(error)
        else:
            self._rest = Stepwise(work, waits_for=waits_for)
        self._writing, self._since = True, asyncio.get_running_loop().time()
        self._reader.nudge()
        return True

    def look(self, now: float) -> None:
        """Has nothing been written for long, or is a write not taken?"""
        if self._wrote:
            self._wrote, self._since = False, now
        silence = now - self._since
        if self._writing and silence >= SEND_SECONDS:
            self._writing = False
            self._limit.reschedule(now)
        elif not self._writing and silence >= self._lookout.keepalive and self._form.comment:
            self._reader.nudge()


@cache
def head_of(media_type: str) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of a stream, as sse-starlette has them. What becomes of the connection is the server's to say."""
    response = EventSourceResponse(iter(()), headers=HEADERS, media_type=media_type)
    return tuple(header for header in response.raw_headers if header[0] != b"connection")
