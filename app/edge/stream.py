"""A run as an HTTP response: whoever brings something writes it, while the request waits for its client to leave.

Rule: one write at a time, and what is ready goes out in one. A lone event costs no switch of tasks (decision 0026).
What cannot be taken at once, because a write has to wait or because there is much of it, is written by a task that is
there as long as that takes: a stream with nothing to write holds none but its request's (decision 0038). The reader is
closed however the response ends. Of sse-starlette's response this has the headers and the comments; it writes by
itself, because a cancel scope around each write and three tasks beside it cost more than everything else that happens
to an event (decision 0018).
"""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine, Sequence
from contextvars import copy_context
from types import CoroutineType, MethodType
from typing import Protocol

from starlette.types import Receive, Scope, Send

from app.core.errors import AppError
from app.core.wire import Batch
from app.edge.formats import Format
from app.edge.lookout import Lookout
from app.engine.pauses import Stepwise, begun
from app.engine.reader import Reader

SEND_SECONDS = 60.0
"""A reader that takes nothing for so long is let go, because what it has not read yet is kept for it. It may come back
and read on."""

LAST_BYTES = 16_000
"""So much leaves together with the response's end. The end of more waits until that is taken: with the end a reader is
gone for a server that stops, and its connection idle."""

logger = logging.getLogger(__name__)


class Connection(Protocol):
    """Writes at once what can be."""

    def write_piece(self, body: bytes) -> bool:
        """Write a piece of a response that has begun, or say that it is to be sent."""


class Unknown:
    """A connection behind others who see what is sent, or a server's that is none of ours."""

    def write_piece(self, _: bytes) -> bool:
        """It is to be sent."""
        return False


UNKNOWN = Unknown()


class RunStream:
    """A run's events from a reader's position on.

    Args:
        reader: closed at the end.
        form: how events are written.
        request_id: told in a header.
        lookout: has the stream notice silence, which a comment breaks, and a write that is not taken, which ends it.
    """

    __slots__ = (
        "_at_work",
        "_connection",
        "_context",
        "_ended",
        "_failure",
        "_form",
        "_frames",
        "_limit",
        "_lookout",
        "_open",
        "_reader",
        "_request_id",
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
        self._at_work: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._writing = self._wrote = False
        self._open, self._ended = True, False
        self._since = asyncio.get_running_loop().time()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the run ends or the client leaves, which is heard after the response's end, too."""
        if scope["method"] == "HEAD":
            self._reader.close()  # headers only
        self._send, self._connection = send, connection_of(send)
        self._context = copy_context()
        self._lookout.watch(self)
        try:
            async with self._limit:
                await Stepwise(self._begin(), self._context.run)
                while (await receive())["type"] != "http.disconnect":
                    pass
                self._reader.close()
                if self._at_work is not None:  # such as in a store, which is not to be cut off
                    await asyncio.wait([self._at_work])
        except TimeoutError:
            if not self._limit.expired():
                raise
            if self._failure is None:
                logger.info("a reader took nothing for %s s and is let go", SEND_SECONDS)
        finally:
            await self._leave()
        if self._failure is not None:
            raise self._failure

    async def _begin(self) -> None:
        """The head, and a run's first event. More is for a task, so that the client's leaving is heard meanwhile."""
        headers = [*self._form.head, (b"x-request-id", self._request_id.encode("latin-1"))]
        await self._until(self._send({"type": "http.response.start", "status": 200, "headers": headers}))
        self._reader.offer(self)
        if self._reader.waits or (await self._write() and await self._write()):
            self._work(self._go_on())

    async def _leave(self) -> None:
        self._open = False
        self._lookout.leave(self)
        self._reader.close()
        if self._at_work is not None:
            self._at_work.cancel()
            await asyncio.wait([self._at_work])

    def take(self, data: Sequence[bytes], first: int) -> bool:
        """Write at once, in whoever's task this is; what has to wait is finished in a task of the stream's own."""
        if self._at_work is not None or not self._open:
            return False
        frames = self._frames  # called by name: a method of a slot is looked up each time
        try:
            body = frames(data, first)
            if body is None:
                return False
            if self._connection.write_piece(body):
                self._wrote = True
            else:
                self._begin_to_send(body)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - not for the agent, whose task this may be
            self._stop(error)
        return True

    def _begin_to_send(self, body: bytes) -> None:
        """As far as that needs no waiting."""
        sending = self._send({"type": "http.response.body", "body": body, "more_body": True})
        work = sending if isinstance(sending, CoroutineType) else sending.__await__()
        try:
            waits_for = self._context.run(work.send, None)
        except StopIteration:
            self._wrote = True
        else:
            self._work(self._go_on(Stepwise(work, waits_for=waits_for)))

    def read_on(self) -> None:
        """Have what there is written, unless that is being done.

        A run's end at once, in whoever's task: with a task for it a short run takes a tenth more CPU. What goes on has
        its turn, so that what comes meanwhile leaves with it.
        """
        if self._at_work is not None or not self._open:
            return
        work = self._go_on()
        if not self._reader.run.log.ended:
            self._work(work)
        elif (left := self._context.run(begun, work)) is not None:
            self._work(left)

    def _work(self, work: Coroutine[object, None, None]) -> None:
        self._at_work = asyncio.create_task(work, name="write a stream", context=self._context)

    async def _go_on(self, writing: Awaitable[None] | None = None, comment: bytes = b"") -> None:
        """A write that has begun, or a comment, and what there is by then."""
        try:
            if writing is not None:
                await self._until(writing)
            if comment:
                await self._put(comment)
            while await self._write():
                pass
        except BaseException as error:  # noqa: BLE001 - the request's task raises it
            self._stop(error)
        finally:
            self._at_work = None

    async def _write(self) -> bool:
        """What is handed out next, or the end where nothing more will come. Whether to go on, up to the place's end."""
        try:
            batch = await anext(aiter(self._reader), None)
        except AppError as error:  # the stream ends here, the run does not: the client may read on later
            logger.warning("a reader is let go: %s", error.code)
            batch = None
        if batch is None and (self._reader.rests or self._ended):
            return False
        body = await self._formed(batch) if batch is not None else b""
        is_all = batch is None
        self._ended = is_all or (self._reader.over and len(body) <= LAST_BYTES)
        del batch  # what is written may be long in being taken
        await self._put(body, more=not self._ended)
        return not is_all

    async def _formed(self, batch: Batch) -> bytes:
        return await self._form.body(self._reader.run.log, batch) if batch.data else self._form.comment

    async def _put(self, body: bytes, *, more: bool = True) -> None:
        await self._until(self._send({"type": "http.response.body", "body": body, "more_body": more}))

    async def _until(self, writing: Awaitable[None]) -> None:
        """A write, under the lookout's eyes."""
        self._writing, self._since = True, asyncio.get_running_loop().time()
        await writing
        self._writing, self._wrote = False, True

    def _stop(self, failure: BaseException | None = None) -> None:
        """Have the request's task end the stream."""
        if self._open:
            self._open, self._failure = False, failure
            self._limit.reschedule(asyncio.get_running_loop().time())

    def look(self, now: float) -> None:
        """Has nothing been written for long, or is a write not taken?"""
        if self._wrote:
            self._wrote, self._since = False, now
        silence = now - self._since
        if self._writing and silence >= SEND_SECONDS:
            self._stop()
        elif not self._writing and silence >= self._lookout.keepalive and self._form.comment:
            self._break_silence()

    def _break_silence(self) -> None:
        if self._at_work is None and not self._ended:
            self._work(self._go_on(comment=self._form.comment))
        else:
            self._reader.nudge()


def connection_of(send: Send) -> Connection:
    """Whose own way to send this is, with nothing around it."""
    is_own = type(send) is MethodType  # no proxy, which would name the owner of what it stands for
    owner: Connection = getattr(send, "__self__", UNKNOWN) if is_own else UNKNOWN
    return owner if hasattr(owner, "write_piece") else UNKNOWN
