"""Requests of every transport: their paths matched, their bodies read and parsed, and their commands answered.

Rule: a path with ids is matched before it is decoded. ``/`` separates segments, and ``%2F`` is part of an id. So every
id has exactly one address, and no id can match another route.

Rule: a body has limits of size and time. One that is too large is read to its end without being kept, so that the
client sees the error.

Rule: a large body is parsed in a thread, so that it does not block the event loop. Other tasks run between the pieces
of a large result.

Rule: a command has the same result on every transport.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterator, Mapping
from typing import Self, TypeVar
from urllib.parse import quote, unquote

from pydantic_core import to_json
from starlette.requests import Request
from starlette.routing import Match, Route
from starlette.types import Scope

from agui_container.engine.engine import Engine
from agui_container.engine.views import View
from agui_container.ports import Caller
from agui_container.protocol.errors import AppError, ErrorCode, shutting_down, validation_error
from agui_container.protocol.parser import Request as AgentRequest
from agui_container.protocol.parser import parse, parse_fields
from agui_container.threads import LARGE_BYTES, offload_if_large
from agui_core.commands import (
    Attach,
    Cancel,
    Capabilities,
    Command,
    FileCommand,
    Ping,
    RunsGet,
    RunsList,
)

logger = logging.getLogger(__name__)

READ_SECONDS = 60.0
"""Seconds in which a client must have sent its body."""

DISCARDED_BYTES = 100_000_000
"""Bytes of a body that are read at most. A body that is too large is read so far, so that the client sees the error."""

T = TypeVar("T")


# --- paths ------------------------------------------------------------------------------------------------------------

THREAD = "/threads/{threadId}"
THREAD_ROUTES = (
    ("/threads", "GET", "threads.list"),
    (THREAD, "GET", "threads.get"),
    (THREAD, "PATCH", "threads.rename"),
    (THREAD, "DELETE", "threads.delete"),
    (f"{THREAD}/delta", "GET", "threads.delta"),
    (f"{THREAD}/fork", "POST", "threads.fork"),
    (f"{THREAD}/messages/{{messageId}}/feedback", "POST", "threads.feedback"),
)
"""Path and method of each command of threads that is answered as JSON."""


class RawPathRoute(Route):
    """A route whose parameters are single segments of the raw path, decoded after the match."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        raw_path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
        match, child_scope = super().matches({**scope, "path": raw_path.decode("latin-1")})
        if match is not Match.NONE:
            parameters = child_scope["path_params"]
            child_scope["path_params"] = {name: unquote(value) for name, value in parameters.items()}
        return match, child_scope


# --- bodies -----------------------------------------------------------------------------------------------------------


async def read_request(request: Request, max_bytes: int, service: Engine) -> AgentRequest:
    """Parse a run input or a command. Raises ``AppError`` VALIDATION_ERROR, naming the field, or as ``read_body``."""
    return await parse_body(await read_body(request, max_bytes, service))


async def read_fields(request: Request, max_bytes: int, service: Engine) -> tuple[dict[str, object], int]:
    """Return a JSON object and its size in bytes. An empty body is an empty object. Raises as ``read_request``."""
    body = await read_body(request, max_bytes, service)
    return await offload_if_large(len(body), parse_fields, body or b"{}", logger.warning), len(body)


async def read_body(request: Request, max_bytes: int, service: Engine) -> bytes:
    """Read the whole body of a request.

    Raises:
        AppError: PAYLOAD_TOO_LARGE if the body exceeds ``max_bytes``; VALIDATION_ERROR if it is compressed or
            incomplete; SHUTTING_DOWN if the server cancels the request while ``service`` is draining.
        TimeoutError, asyncio.CancelledError: as raised by the caller's own timeout or cancellation.
    """

    async def read() -> bytes:
        return b"".join([chunk async for chunk in BodyChunks(request, max_bytes)])

    return await in_time(service, read())


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
            raise validation_error("Content-Encoding: the body must be sent as it is, not compressed.")
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
    return validation_error("The body did not arrive in full.")


def check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise AppError(ErrorCode.PAYLOAD_TOO_LARGE, f"The body has more than {max_bytes} bytes.")


async def parse_body(body: bytes) -> AgentRequest:
    return await offload_if_large(len(body), parse, body, logger.warning)


# --- commands ---------------------------------------------------------------------------------------------------------


async def answer_command(service: Engine, command: Command, caller: Caller) -> View:  # noqa: PLR0911 - one for each kind
    """Return the result of a command that needs no stream."""
    if isinstance(command, FileCommand):
        return await service.files.answer(caller, command)
    match command:
        case Cancel():
            return await service.runs.cancel(caller, command.thread_id, command.run_id)
        case RunsList():
            return {"runs": await service.runs.list(caller)}
        case Attach() | RunsGet():
            return await service.runs.find(caller, command.thread_id, command.run_id)
        case Capabilities():
            return {"capabilities": service.capabilities.model_dump(mode="json", by_alias=True)}
        case Ping():
            return {"pong": True}
        case _:
            return await service.threads.answer(caller, command)


async def encode_result(result: Mapping[str, object]) -> bytes:
    pieces, size = list[bytes](), 0
    for piece in encode_pieces(result):
        pieces.append(piece)
        size += len(piece)
        if size > LARGE_BYTES:
            await asyncio.sleep(0)
            size = 0
    return b"".join(pieces)


def encode_pieces(result: Mapping[str, object]) -> Iterator[bytes]:
    """Encode a JSON object in pieces: its members, and each item of a list by itself."""
    yield b"{"
    for index, (name, value) in enumerate(result.items()):
        yield b"%b%b:" % (b"," if index else b"", to_json(name))
        if isinstance(value, list):
            yield b"["
            yield from (b"%b%b" % (b"," if number else b"", to_json(item)) for number, item in enumerate(value))
            yield b"]"
        else:
            yield to_json(value)
    yield b"}"
