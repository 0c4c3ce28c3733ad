"""The streams from and to one MCP server, over HTTP or a child process.

The transport over HTTP is that of the ``mcp`` package, with the additions of this module: halves of symbols are
replaced before the package parses messages, results are repaired before it validates them, messages have a limit, and a
session that the server refuses is noticed. The package follows the specification, which says status 404 for it. Servers
also answer 400, 401 or an error of JSON-RPC.

Source: "Transports" in the Model Context Protocol specification.
"""

import inspect
import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Final, Protocol, Self

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCResponse, RequestId
from msgspec import Struct, field

from agui_container.runtime.log_values import format_fields
from agui_container.runtime.surrogates import repair_escapes
from agui_container.tools.mcp.faults import (
    MAX_MESSAGE_BYTES,
    McpFault,
    failed_answer,
    may_refuse_session,
    names_session,
)
from agui_container.tools.mcp.messages import repair_message, repair_result
from agui_container.tools.mcp.servers import HttpServer, Server
from agui_container.tools.mcp.stdio import open_process

logger = logging.getLogger(__name__)

READ_SECONDS = 300.0
"""Seconds without data after which an HTTP response fails. The timeout of a call applies instead if it is longer."""

NO_REFUSAL: Final = frozenset({408, 413, 429})
"""Statuses from 400 to 499 that do not mean that the server refuses the session."""

DATA: Final = re.compile(rb"(?:\A|(?<=[\r\n]))(data:)([^\r\n]+)")
"""Line of an event that has a message."""

EVENT_END: Final = re.compile(rb"\n\r?\n")

# The package's own limit has an error that its caller cannot tell from a lost connection. Strands requires a version
# below 2.2, which has none (docs/decisions/0016).
_HAS_LIMIT: Final = "max_sse_event_size" in inspect.signature(streamable_http_client).parameters
_connect = partial(streamable_http_client, max_sse_event_size=None) if _HAS_LIMIT else streamable_http_client

Incoming = SessionMessage | Exception


class MessageReader(Protocol):
    """Stream of messages from a server. The package's own protocol for it is private."""

    async def receive(self) -> Incoming:
        """Wait for the next message."""

    async def aclose(self) -> None:
        """Close the stream."""

    async def __anext__(self) -> Incoming: ...


class MessageWriter(Protocol):
    """Stream of messages to a server. The package's own protocol for it is private."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send one message."""

    async def aclose(self) -> None:
        """Close the stream."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None: ...


class HttpRecord(Struct, eq=False):
    """Observations of the responses of one session over HTTP.

    Attributes:
        has_session: true if requests carry the id of a session. Servers since 2026-07-28 have no sessions.
        faults: faults of requests whose error has not arrived yet.
    """

    has_session: bool = False
    faults: dict[RequestId, McpFault] = field(default_factory=dict)


class ObservedStream:
    """Stream of messages from a server that repairs results, marks faults and calls ``on_end`` before it is closed."""

    def __init__(self, reader: MessageReader, server: str, record: HttpRecord, on_end: Callable[[], None]) -> None:
        self._reader = reader
        self._server = server
        self._record = record
        self._on_end = on_end

    @property
    def last_context(self) -> object:
        """Context variables of the sender of the answered request. The package reads this attribute."""
        return getattr(self._reader, "last_context", None)

    async def receive(self) -> Incoming:
        """Wait for the next message."""
        return self._observe(await self._reader.receive())

    async def aclose(self) -> None:
        """Call ``on_end`` and close the stream."""
        self._on_end()
        await self._reader.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        return self._observe(await anext(self._reader))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _observe(self, incoming: Incoming) -> Incoming:
        answer = incoming.message if isinstance(incoming, SessionMessage) else None
        if isinstance(answer, JSONRPCResponse):
            answer.result, removed = repair_result(answer.result)
            if removed:
                fields = {"server": self._server, "tools": ", ".join(removed)}
                logger.warning("malformed MCP tools left out %s", format_fields(fields))
        elif isinstance(answer, JSONRPCError) and answer.id is not None and (fault := self._fault_of(answer)):
            return failed_answer(answer.id, fault)
        return incoming

    def _fault_of(self, answer: JSONRPCError) -> McpFault | None:
        fault = None if answer.id is None else self._record.faults.pop(answer.id, None)
        if fault is None:
            return McpFault.SESSION_REFUSED if self._record.has_session and names_session(answer.error) else None
        if fault is McpFault.SESSION_REFUSED and not may_refuse_session(answer.error):
            return None
        return fault


@asynccontextmanager
async def transport(
    server: Server, record: HttpRecord, on_end: Callable[[], None]
) -> AsyncGenerator[tuple[ObservedStream, MessageWriter]]:
    """Open the streams from and to a server. ``on_end`` is called when the connection is closed."""
    async with _streams(server, record) as (reader, writer):
        yield ObservedStream(reader, server.name, record, on_end), writer


def _streams(server: Server, record: HttpRecord) -> AbstractAsyncContextManager[tuple[MessageReader, MessageWriter]]:
    return _http(server, record) if isinstance(server, HttpServer) else open_process(server)


# --- HTTP ---


@asynccontextmanager
async def _http(server: HttpServer, record: HttpRecord) -> AsyncGenerator[tuple[MessageReader, MessageWriter]]:
    async def observe(response: httpx2.Response) -> None:
        request = _request_id(response.request)

        def note(fault: McpFault) -> None:
            if request is not None:
                record.faults[request] = fault

        if request is not None and MCP_SESSION_ID in response.request.headers:
            record.has_session = True
            if response.is_client_error and response.status_code not in NO_REFUSAL:
                note(McpFault.SESSION_REFUSED)

        def end_request() -> bytes:
            note(McpFault.TOO_LARGE)
            return b"" if request is None else error_event(request)

        if isinstance(response.stream, AsyncIterable):
            is_events = response.headers.get("content-type", "").startswith("text/event-stream")
            # The package has words of its own for a status that is no success.
            repair = partial(repair_message, request=request) if response.is_success else None
            response.stream = CheckedStream(response.stream, end_request, repair, is_events=is_events)

    timeout = httpx2.Timeout(server.connect_timeout, read=max(READ_SECONDS, server.timeout))
    # Not compressed, because the limit counts bytes as they arrive.
    headers = {"accept-encoding": "identity", **server.headers}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks={"response": [observe]}) as client,
        _connect(str(server.url), http_client=client) as streams,
    ):
        yield streams


def _request_id(request: httpx2.Request) -> RequestId | None:
    """Return the id of the JSON-RPC request that a POST carries, or None if it carries none."""
    if request.method != "POST":
        return None
    found: object = json.loads(request.read()).get("id")
    return found if isinstance(found, int | str) else None


def error_event(request: RequestId) -> bytes:
    """Return an event that ends a request with an error."""
    error = ErrorData(code=INTERNAL_ERROR, message=McpFault.TOO_LARGE.name)
    answer = JSONRPCError(jsonrpc="2.0", id=request, error=error)
    return b"\n\ndata: %b\n\n" % answer.model_dump_json(by_alias=True, exclude_none=True).encode()


class CheckedStream(httpx2.AsyncByteStream):
    """Body of a response without halves of symbols. It ends once a message has more than ``MAX_MESSAGE_BYTES``.

    A stream of events ends with an answer to the request in place of that message: the package would resume a stream
    that fails, and wait. Any other body fails.

    A stream of events is passed on line by line and any other body as a whole, because a chunk may end inside an
    escape or a message.

    Args:
        body: the body.
        end_request: called for a message over the limit. Returns the event that takes its place.
        repair: returns a message in the form that the package reads. None if the body is no answer.
        is_events: true if the body is a stream of events. The limit is that of one event then.
    """

    def __init__(
        self,
        body: httpx2.AsyncByteStream,
        end_request: Callable[[], bytes],
        repair: Callable[[bytes], bytes] | None = None,
        *,
        is_events: bool,
    ) -> None:
        self._body = body
        self._is_events = is_events
        self._end_request = end_request
        self._repair = repair

    async def __aiter__(self) -> AsyncIterator[bytes]:
        begin: list[bytes] = []
        async for chunk in self._bounded():
            end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1 if self._is_events else 0
            if end:
                yield self._repaired(b"".join([*begin, chunk[:end]]))
                begin = []
            begin.append(chunk[end:])
        yield self._repaired(b"".join(begin))

    def _repaired(self, text: bytes) -> bytes:
        whole, repair = repair_escapes(text), self._repair
        if repair is None:
            return whole
        return DATA.sub(lambda line: line[1] + repair(line[2]), whole) if self._is_events else repair(whole)

    async def _bounded(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._body:
            first, *others = EVENT_END.split(chunk) if self._is_events else [chunk]
            sizes = [size + len(first), *map(len, others)]
            size = sizes[-1]
            if max(sizes) > MAX_MESSAGE_BYTES:
                end = self._end_request()
                if not self._is_events:
                    raise httpx2.StreamError("The message is too large")
                yield end
                return
            yield chunk

    async def aclose(self) -> None:
        """Close the body."""
        await self._body.aclose()
