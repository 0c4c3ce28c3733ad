"""Request bodies: read whole, within a size and a time, and parsed off the event loop when they are large.

Rule: large ones are parsed one after the other. The interpreter does not go faster when they are parsed side by side;
they only take their memory at the same time, and everybody else's turns.
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
from agui_container.protocol.parser import Request as Asked
from agui_container.protocol.parser import parse, parse_fields

logger = logging.getLogger(__name__)

READ_SECONDS = 60.0
"""A client that has not sent its body by then gets a refusal."""

DISCARDED_BYTES = 100_000_000
"""How much of a body that is too large is still read, so that the client gets to see the refusal."""

LARGE_BYTES = 100_000
"""Bodies above this are parsed in a thread: a megabyte takes tens of milliseconds."""

T = TypeVar("T")

_turn: RunVar[CapacityLimiter] = RunVar("large_body")


async def read_body(request: Request, max_bytes: int, service: Service) -> bytes:
    """Read the whole body of a request.

    Raises:
        AppError: PAYLOAD_TOO_LARGE; VALIDATION_ERROR if the body is compressed or does not arrive; SHUTTING_DOWN if the
            server cancels the request while ``service`` is draining.
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
    """What a request gets whose body ends early. A new one each time: one that is raised holds the frames of it."""
    return AppError(ErrorCode.VALIDATION_ERROR, "The body did not arrive in full.")


def check_size(size: int, max_bytes: int) -> None:
    """Raises ``AppError`` PAYLOAD_TOO_LARGE."""
    if size > max_bytes:
        raise AppError(ErrorCode.PAYLOAD_TOO_LARGE, f"The body has more than {max_bytes} bytes.")


async def parse_body(body: bytes) -> Asked:
    """What the body asks for. Raises ``AppError`` VALIDATION_ERROR."""
    return await _parse(partial(parse, warn=logger.warning), body)


async def parse_body_fields(body: bytes) -> dict[str, object]:
    """What the body adds to its route. Raises ``AppError`` VALIDATION_ERROR."""
    return await _parse(parse_fields, body or b"{}")


async def _parse(parser: Callable[[bytes], T], body: bytes) -> T:
    if len(body) <= LARGE_BYTES:
        return parser(body)
    return await anyio.to_thread.run_sync(parser, body, limiter=_parse_slot())


def _parse_slot() -> CapacityLimiter:
    # Made here and kept per event loop: a limiter belongs to the loop it was first used in.
    try:
        return _turn.get()
    except LookupError:
        limiter = CapacityLimiter(1)
        _turn.set(limiter)
        return limiter
