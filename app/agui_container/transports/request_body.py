"""Read and parse request bodies within limits of size and time.

Rule: a large body is parsed in a thread, so that it does not block the event loop. Only one body is parsed there at a
time. Parsing in parallel would not be faster, because of the interpreter lock, and would need more memory at once.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar
from starlette.requests import Request

from agui_container.engine.registry.registry import shutting_down
from agui_container.engine.service import Service
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import Request as AgentRequest
from agui_container.protocol.parser import parse, parse_fields

logger = logging.getLogger(__name__)

READ_SECONDS = 60.0
"""Seconds in which a client must have sent its body."""

DISCARDED_BYTES = 100_000_000
"""Bytes of a body that are read at most. A body that is too large is read so far, so that the client sees the error."""

LARGE_BYTES = 100_000
"""Largest body, in bytes, that is parsed on the event loop."""

T = TypeVar("T")

_parse_limiter: RunVar[CapacityLimiter] = RunVar("large_body")


async def read_body(request: Request, max_bytes: int, service: Service) -> bytes:
    """Read the whole body of a request.

    Raises:
        AppError: PAYLOAD_TOO_LARGE if the body exceeds ``max_bytes``; VALIDATION_ERROR if it is compressed or
            incomplete; SHUTTING_DOWN if the server cancels the request while ``service`` is draining.
        TimeoutError, asyncio.CancelledError: as raised by the caller's own timeout or cancellation.
    """
    if request.headers.get("content-encoding", "identity") != "identity":
        raise AppError(ErrorCode.VALIDATION_ERROR, "Content-Encoding: the body must be sent as it is, not compressed.")
    size, chunks, limit = 0, [], asyncio.timeout(READ_SECONDS)
    try:
        async with limit:
            is_more = True
            while is_more and size <= DISCARDED_BYTES:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise incomplete_body_error()
                chunk, is_more = message.get("body", b""), message.get("more_body", False)
                size += len(chunk)
                if size <= max_bytes:
                    chunks.append(chunk)
    except TimeoutError:
        if not limit.expired():
            raise
        raise incomplete_body_error() from None
    except asyncio.CancelledError:
        if not service.is_draining:
            raise
        raise shutting_down() from None
    check_size(size, max_bytes)
    return b"".join(chunks)


def incomplete_body_error() -> AppError:
    """Return the error for a body that ends early. Each call makes a new one: a raised error refers to frames."""
    return AppError(ErrorCode.VALIDATION_ERROR, "The body did not arrive in full.")


def check_size(size: int, max_bytes: int) -> None:
    """Check a size in bytes.

    Raises:
        AppError: PAYLOAD_TOO_LARGE if ``size`` exceeds ``max_bytes``.
    """
    if size > max_bytes:
        raise AppError(ErrorCode.PAYLOAD_TOO_LARGE, f"The body has more than {max_bytes} bytes.")


async def parse_body(body: bytes) -> AgentRequest:
    """Parse a run input or a command.

    Raises:
        AppError: VALIDATION_ERROR, naming the field.
    """
    return await _parse(partial(parse, warn=logger.warning), body)


async def parse_body_fields(body: bytes) -> dict[str, object]:
    """Parse a JSON object whose fields complete those of the URL. An empty body is an empty object.

    Raises:
        AppError: VALIDATION_ERROR if the body is no JSON object.
    """
    return await _parse(parse_fields, body or b"{}")


async def _parse(parser: Callable[[bytes], T], body: bytes) -> T:
    if len(body) <= LARGE_BYTES:
        return parser(body)
    return await anyio.to_thread.run_sync(parser, body, limiter=_parse_slot())


def _parse_slot() -> CapacityLimiter:
    # One limiter per event loop, because a limiter belongs to the loop that uses it first.
    try:
        return _parse_limiter.get()
    except LookupError:
        limiter = CapacityLimiter(1)
        _parse_limiter.set(limiter)
        return limiter
