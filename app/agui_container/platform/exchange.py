"""One request to a container, and its answer on the way to the caller.

Rules:

- The exchange belongs to the platform, not to the caller: it reads the container's answer to its end even if the caller
  has gone, so a container never notices that (sample-multi-agent#71).
- Any 4xx and 5xx becomes RUN_ERROR with the code AGENT_ERROR, and its body is only logged.
- A slow caller slows the container down. Bytes are never changed.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress

import anyio
import httpx
from anyio.streams.memory import MemoryObjectSendStream
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from agui_container.platform.errors import PlatformError, PlatformRefusal
from agui_container.platform.session import ContainerSession, PlatformContext
from agui_container.platform.streams import StreamInspector, shown

MAX_PIECES = 16
"""Pieces of an answer that wait for the caller."""

MAX_LOGGED = 2000

logger = logging.getLogger(__name__)


class ContainerExchange:
    """One request to the container of a session.

    Args:
        session: the session.
        request: the request, complete.
        context: surroundings of all sessions.
    """

    def __init__(self, session: ContainerSession, request: httpx.Request, context: PlatformContext) -> None:
        self.cut: str | None = None
        """The reason why the answer has ended before its end."""
        self._session = session
        self._request = request
        self._context = context
        self._limits, self._clock, self._findings = context.limits, context.clock, context.findings
        self._head: asyncio.Future[httpx.Response] = asyncio.get_running_loop().create_future()
        self._sender, self._receiver = anyio.create_memory_object_stream[bytes](MAX_PIECES)

    async def head(self) -> httpx.Response:
        """Wait for the head of the answer. Raises ``PlatformRefusal`` if there is none, or if it tells an error."""
        return await asyncio.shield(self._head)

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the body."""
        async for piece in self._receiver:
            yield piece

    def leave(self) -> None:
        """Read no more. The exchange continues, and drops what comes."""
        self._receiver.close()

    async def run(self) -> None:
        """Send the request and read the whole answer."""
        try:
            async with self._session.use():
                await self._exchange()
        except PlatformRefusal as refusal:
            self._refuse(refusal)
        except Exception:
            logger.exception("session %s request failed in the platform itself", self._session.id)
            self._refuse(PlatformRefusal(PlatformError.INTERNAL_ERROR))
        finally:
            self._sender.close()

    async def _exchange(self) -> None:
        try:
            async with self._clock.timeout(self._limits.sync_seconds) as deadline:
                response = await self._context.http.send(self._request, stream=True)
                try:
                    await self._read(response, deadline)
                finally:
                    await response.aclose()
        except TimeoutError:
            self._fail("reached the longest time that an answer may take")
        except httpx.HTTPError as error:
            self._fail(f"was cut off by the container: {type(error).__name__}: {error}")

    async def _read(self, response: httpx.Response, deadline: asyncio.Timeout) -> None:
        if response.is_error:
            await self._fold(response)
            return
        self._findings.judge(
            "invocations.answer", holds=response.status_code == httpx.codes.OK, detail=f"{response.status_code}"
        )
        content_type = response.headers.get("content-type", "")
        if content_type.startswith("text/event-stream") and (at := deadline.when()) is not None:
            seconds = self._limits.stream_seconds - self._limits.sync_seconds
            deadline.reschedule(at + seconds / self._clock.factor)
        inspector = StreamInspector(self._findings, self._request.content, content_type)
        self._session.answers.add(inspector)
        self._head.set_result(response)
        try:
            async for piece in response.aiter_raw():
                with inspector.handling():
                    inspector.feed(piece)
                    await pass_on(self._sender, piece)
        finally:
            self._session.answers.discard(inspector)
        inspector.finish()

    async def _fold(self, response: httpx.Response) -> None:
        """Replace an error of the container, as AgentCore does on protocol AGUI."""
        body = await response.aread()
        detail = f"{response.status_code}: {shown(body)}"
        logger.warning("session %s folded into AGENT_ERROR: the container answered %s", self._session.id, detail)
        self._findings.break_rule("error.visible", f"a request was answered {detail}")
        self._refuse(PlatformRefusal(PlatformError.AGENT_ERROR))

    def _fail(self, reason: str) -> None:
        logger.warning("session %s answer %s", self._session.id, reason)
        self.cut = reason
        self._refuse(PlatformRefusal(PlatformError.AGENT_ERROR))

    def _refuse(self, refusal: PlatformRefusal) -> None:
        if not self._head.done():
            self._head.set_exception(refusal)
            self._head.exception()  # the caller may be gone
            self.leave()


async def pass_on(sender: MemoryObjectSendStream[bytes], piece: bytes) -> None:
    """Hand a piece to the caller, or drop it if the caller has gone."""
    with suppress(anyio.BrokenResourceError):
        await sender.send(piece)


class ExchangeResponse(StreamingResponse):
    """Answer of a container, as it comes. One that was cut has no proper end, so that the caller notices."""

    def __init__(self, exchange: ContainerExchange, status: int, headers: dict[str, str]) -> None:
        super().__init__(exchange.body(), status, headers)
        self._exchange = exchange

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer until the end, or until the caller has gone."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._exchange.leave()

    async def stream_response(self, send: Send) -> None:
        """Send the head and each piece of the body, and the end if there is one."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for piece in self.body_iterator:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if self._exchange.cut is None:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
