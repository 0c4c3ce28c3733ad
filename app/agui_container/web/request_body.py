"""Read and parse request bodies within limits of size and time.

Rule: a body that is too large is read to its end without being kept, so that the client sees the error.

Rule: a large body is parsed in a thread, so that it does not block the event loop.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Self, TypeVar

from starlette.requests import Request

from agui_container.engine.engine import Engine
from agui_container.protocol.errors import AppError, ErrorCode, shutting_down
from agui_container.protocol.parser import Request as AgentRequest
from agui_container.protocol.parser import parse, parse_fields
from agui_container.threads import offload_if_large

logger = logging.getLogger(__name__)

READ_SECONDS = 60.0
"""Seconds in which a client must have sent its body."""

DISCARDED_BYTES = 100_000_000
"""Bytes of a body that are read at most. A body that is too large is read so far, so that the client sees the error."""

T = TypeVar("T")


async def read_request(request: Request, max_bytes: int, service: Engine) -> AgentRequest:
    """Parse a run input or a command. Raises ``AppError`` VALIDATION_ERROR, naming the field, or as ``read_body``."""
    return await parse_body(await read_body(request, max_bytes, service))


async def read_fields(request: Request, max_bytes: int, service: Engine) -> tuple[dict[str, object], int]:
    """Return a JSON object and its size in bytes. An empty body is an empty object. Raises as ``read_request``."""
    body = await read_body(request, max_bytes, service)
    return await _parse(partial(parse_fields, warn=logger.warning), body or b"{}"), len(body)


async def read_body(request: Request, max_bytes: int, service: Engine) -> bytes:
    """Read the whole body of a request.

    Raises:
        AppError: PAYLOAD_TOO_LARGE if the body exceeds ``max_bytes``; VALIDATION_ERROR if it is compressed or
            incomplete; SHUTTING_DOWN if the server cancels the request while ``service`` is draining.
        TimeoutError, asyncio.CancelledError: as raised by the caller's own timeout or cancellation.
    """
    return await in_time(service, _read_chunks(request, max_bytes))


async def _read_chunks(request: Request, max_bytes: int) -> bytes:
    return b"".join([chunk async for chunk in BodyChunks(request, max_bytes)])


async def in_time(service: Engine, work: Awaitable[T]) -> T:
    """Limit the time in which a body arrives. Raises as ``read_body``."""
    limit = asyncio.timeout(READ_SECONDS)
    try:
        async with limit:
            return await work
    except TimeoutError:
        if not limit.expired():
            raise
        raise incomplete_body_error() from None
    except asyncio.CancelledError:
        if not service.is_draining:
            raise
        raise shutting_down() from None


class BodyChunks:
    """Iterator over the parts of a body as they arrive. Raises ``AppError`` as ``read_body`` once it has been read."""

    def __init__(self, request: Request, max_bytes: int) -> None:
        if request.headers.get("content-encoding", "identity") != "identity":
            text = "Content-Encoding: the body must be sent as it is, not compressed."
            raise AppError(ErrorCode.VALIDATION_ERROR, text)
        self._receive = request.receive
        self._max_bytes = max_bytes
        self._size = 0
        self._is_more = True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while self._is_more and self._size <= DISCARDED_BYTES:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise incomplete_body_error()
            chunk: bytes = message.get("body", b"")
            self._is_more = message.get("more_body", False)
            self._size += len(chunk)
            if self._size <= self._max_bytes:
                return chunk
        check_size(self._size, self._max_bytes)
        raise StopAsyncIteration


def incomplete_body_error() -> AppError:
    """Return the error for a body that ends early. Each call makes a new one: a raised error refers to frames."""
    return AppError(ErrorCode.VALIDATION_ERROR, "The body did not arrive in full.")


def check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise AppError(ErrorCode.PAYLOAD_TOO_LARGE, f"The body has more than {max_bytes} bytes.")


async def parse_body(body: bytes) -> AgentRequest:
    return await _parse(partial(parse, warn=logger.warning), body)


async def _parse(parser: Callable[[bytes], T], body: bytes) -> T:
    return await offload_if_large(len(body), parser, body)
