"""One request to a container, and its answer on the way to the caller.

Rules:

- The exchange belongs to the platform, not to the caller: it reads the container's answer to its end even if the caller
  has gone, so a container never notices that (sample-multi-agent#71).
- Any 4xx and 5xx becomes RUN_ERROR with the code AGENT_ERROR, and its body is only logged.
- A slow caller slows the container down. Bytes are never changed.
"""

import asyncio
import logging
from contextlib import aclosing, suppress

import anyio
import httpx
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from agui_container.aws.platform.errors import PlatformError, PlatformRefusal
from agui_container.aws.platform.sessions import ContainerSession

MAX_PIECES = 16
"""Pieces of an answer that wait for the caller."""

MAX_SHOWN = 200
"""Bytes of an error of the container in the log."""

logger = logging.getLogger(__name__)


class ContainerExchange:
    """One complete request to the container of a session.

    ``head`` is completed with the head of the answer, or with ``PlatformRefusal``. ``pieces`` are those of its body.
    ``is_cut`` is True if the answer has ended before its end.
    """

    def __init__(self, session: ContainerSession, request: httpx.Request) -> None:
        self.head: asyncio.Future[httpx.Response] = asyncio.get_running_loop().create_future()
        self.is_cut = False
        self._sender, self.pieces = anyio.create_memory_object_stream[bytes](MAX_PIECES)
        self._session = session
        self._request = request
        self._limits = session.options.limits

    async def run(self) -> None:
        with self._sender:
            try:
                with self._session.use():
                    async with asyncio.timeout(self._limits.sync_seconds) as deadline:
                        response = await self._session.http.send(self._request, stream=True)
                        async with aclosing(response):
                            await self._read(response, deadline)
            except PlatformRefusal as refusal:
                self._refuse(refusal)
            except TimeoutError:
                self._cut("reached the longest time that an answer may take")
            except httpx.HTTPError as error:
                self._cut(f"was cut off by the container: {type(error).__name__}: {error}")
            except Exception:
                logger.exception("session %s request failed in the platform itself", self._session.id)
                self._cut("ended", PlatformError.INTERNAL_ERROR)

    async def _read(self, response: httpx.Response, deadline: asyncio.Timeout) -> None:
        if response.is_error:
            detail = (await response.aread())[:MAX_SHOWN].decode(errors="replace")
            logger.warning("session %s folded into AGENT_ERROR: %s %r", self._session.id, response.status_code, detail)
            self._refuse(PlatformRefusal(PlatformError.AGENT_ERROR))
            return
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        if is_stream and (at := deadline.when()) is not None:
            deadline.reschedule(at + self._limits.stream_seconds - self._limits.sync_seconds)
        self.head.set_result(response)
        async for piece in response.aiter_raw():
            with suppress(anyio.BrokenResourceError):  # the caller has gone
                await self._sender.send(piece)

    def _cut(self, reason: str, error: PlatformError = PlatformError.AGENT_ERROR) -> None:
        logger.warning("session %s answer %s", self._session.id, reason)
        self.is_cut = True
        self._refuse(PlatformRefusal(error))

    def _refuse(self, refusal: PlatformRefusal) -> None:
        if not self.head.done():
            self.head.set_exception(refusal)
            self.head.exception()  # the caller may be gone
            self.pieces.close()


class ExchangeResponse(StreamingResponse):
    """Answer of a container, as it comes. One that was cut has no proper end, so that the caller notices."""

    def __init__(self, exchange: ContainerExchange, status: int, headers: dict[str, str]) -> None:
        super().__init__(exchange.pieces, status, headers)
        self._exchange = exchange

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._exchange.pieces:
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        """Send the head and each piece of the body, and the end if there is one."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for piece in self._exchange.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if not self._exchange.is_cut:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
