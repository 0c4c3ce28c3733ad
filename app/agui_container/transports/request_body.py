"""Read and parse request bodies within limits of size, time and bytes in flight.

Rule: a body counts as in flight until it has been parsed. A body that the budget has no room for is read to its end
without being kept, so that the client sees the error.

Rule: a large body is parsed in a thread, so that it does not block the event loop.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from starlette.requests import Request

from agui_container.engine.admission.quota import Limit, QuotaLease
from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.protocol.errors import AppError, ErrorCode, shutting_down
from agui_container.protocol.parser import Request as AgentRequest
from agui_container.protocol.parser import parse, parse_fields
from agui_container.runtime.offload import offload_if_large
from agui_container.transports.caller_middleware import caller_of, quota_of

logger = logging.getLogger(__name__)

READ_SECONDS = 60.0
"""Seconds in which a client must have sent its body."""

DISCARDED_BYTES = 100_000_000
"""Bytes of a body that are read at most. A body that is too large is read so far, so that the client sees the error."""

T = TypeVar("T")


async def read_request(request: Request, max_bytes: int, service: Service) -> AgentRequest:
    """Read and parse a run input or a command.

    Raises:
        AppError: VALIDATION_ERROR, naming the field, or as raised by ``read_body``.
    """
    with QuotaLease(quota_of(request), Limit.BYTES_IN_FLIGHT) as lease:
        return await parse_body(await read_body(request, max_bytes, service, lease), caller_of(request))


async def read_fields(request: Request, max_bytes: int, service: Service) -> tuple[dict[str, object], int]:
    """Read and parse a JSON object, and return its size in bytes as well. An empty body is an empty object.

    Raises:
        AppError: VALIDATION_ERROR if the body is no JSON object, or as raised by ``read_body``.
    """
    with QuotaLease(quota_of(request), Limit.BYTES_IN_FLIGHT) as lease:
        body = await read_body(request, max_bytes, service, lease)
        return await _parse(partial(parse_fields, warn=logger.warning), body or b"{}", caller_of(request)), len(body)


async def read_body(request: Request, max_bytes: int, service: Service, lease: QuotaLease) -> bytes:
    """Read the whole body of a request.

    Raises:
        AppError: PAYLOAD_TOO_LARGE if the body exceeds ``max_bytes``; RATE_LIMIT_EXCEEDED if too many bytes are in
            flight; VALIDATION_ERROR if it is compressed or incomplete; SHUTTING_DOWN if the server cancels the request
            while ``service`` is draining.
        TimeoutError, asyncio.CancelledError: as raised by the caller's own timeout or cancellation.
    """
    if request.headers.get("content-encoding", "identity") != "identity":
        raise AppError(ErrorCode.VALIDATION_ERROR, "Content-Encoding: the body must be sent as it is, not compressed.")
    buffer, limit = BodyBuffer(max_bytes, lease), asyncio.timeout(READ_SECONDS)
    try:
        async with limit:
            is_more = True
            while is_more and buffer.size <= DISCARDED_BYTES:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise incomplete_body_error()
                buffer.add(message.get("body", b""))
                is_more = message.get("more_body", False)
    except TimeoutError:
        if not limit.expired():
            raise
        raise incomplete_body_error() from None
    except asyncio.CancelledError:
        if not service.is_draining:
            raise
        raise shutting_down() from None
    return buffer.body()


class BodyBuffer:
    """The pieces of a body, as long as the body is within its limits.

    Args:
        max_bytes: largest body.
        lease: counts the pieces.

    Attributes:
        size: bytes that have arrived, kept or not.
    """

    def __init__(self, max_bytes: int, lease: QuotaLease) -> None:
        self.size = 0
        self._max_bytes = max_bytes
        self._lease = lease
        self.chunks: list[bytes] = []
        self._refusal: AppError | None = None

    def add(self, chunk: bytes) -> None:
        """Add a piece. If it exceeds a limit, drop all pieces."""
        self.size += len(chunk)
        if self._refusal is None:
            try:
                check_size(self.size, self._max_bytes)
                self._lease.resize(self.size)
            except AppError as error:
                # A new error, because a raised one refers to frames.
                self._refusal = AppError(error.code, error.message, wait_seconds=error.wait_seconds)
                self.chunks.clear()
                self._lease.release()
            else:
                self.chunks.append(chunk)

    def body(self) -> bytes:
        """Return the whole body.

        Raises:
            AppError: the limit that the body has exceeded.
        """
        check_size(self.size, self._max_bytes)  # rather than a refusal, which the client may try again
        if self._refusal is not None:
            raise self._refusal
        return b"".join(self.chunks)


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


async def parse_body(body: bytes, caller: Caller) -> AgentRequest:
    """Parse a run input or a command.

    Raises:
        AppError: VALIDATION_ERROR, naming the field.
    """
    return await _parse(partial(parse, warn=logger.warning), body, caller)


async def _parse(parser: Callable[[bytes], T], body: bytes, caller: Caller) -> T:
    return await offload_if_large(caller.identity, len(body), parser, body)
