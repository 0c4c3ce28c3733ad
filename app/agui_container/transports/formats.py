"""The two forms a run has over HTTP, Server-Sent Events and protobuf frames, and which one a request gets.

Rule: a request gets protobuf when its ``Accept`` names it, by itself or as ``application/*``, with a quality above 0;
everything else gets SSE. How much one type is preferred over the other does not count. A bare ``*/*`` gets SSE, which
AgentCore's contract promises to clients that ask for nothing (decision 0017). Sources: AG-UI spec 1.1,
basic/transports/http-protobuf#negotiation and http-sse; RFC 9110, 12.5.1.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import HTTPConnection

from agui_container.engine.log.subscription import ReadableLog
from agui_container.protocol.wire import envelope

EVENT_STREAM = "text/event-stream"
PROTOBUF = "application/vnd.ag-ui.event+proto"
"""The whole Content-Type: the official client takes it with anything behind it for SSE."""

HEADERS = {"Cache-Control": "no-cache, no-transform", "Vary": "Accept", "X-Accel-Buffering": "no"}

RANGES = (PROTOBUF, "application/*")
"""What admits protobuf; the most specific that is there decides."""


Head = tuple[tuple[bytes, bytes], ...]
"""Headers as ASGI has them."""


def stream_headers(media_type: str) -> Head:
    """The headers of a stream, as sse-starlette has them. What becomes of the connection is the server's to say.

    Made with the formats, not with a process's first stream: on an event loop it loads 8 ms of anyio.
    """
    response = EventSourceResponse(iter(()), headers=HEADERS, media_type=media_type)
    return tuple(header for header in response.raw_headers if header[0] != b"connection")


class Format(Protocol):
    """How events leave over HTTP."""

    media_type: str
    head: Head
    """What a response that streams begins with, besides the id of its request."""
    comment: bytes
    """What says only that the stream still stands; empty where the format has no such thing."""

    def body_now(self, batch: envelope.Batch) -> bytes | None:
        """One write for a batch; None if that may take a while."""

    async def body(self, log: ReadableLog, batch: envelope.Batch) -> bytes:
        """One write for a batch of this log."""

    def whole(self, data: Sequence[bytes]) -> bytes:
        """A body that is complete already, of events as JSON."""

    def refusal(self, data: bytes) -> bytes:
        """The one event of a request that was refused."""


class SseFormat:
    """Server-Sent Events: ``id`` is the event's number, and a comment breaks long silence."""

    media_type = EVENT_STREAM
    head = stream_headers(EVENT_STREAM)
    comment = ServerSentEvent(comment="keep-alive", sep="\n").encode()

    def body_now(self, batch: envelope.Batch) -> bytes:
        """One write for a batch."""
        return envelope.sse_frames(batch.data, batch.first)

    async def body(self, _: ReadableLog, batch: envelope.Batch) -> bytes:
        """One write for a batch."""
        return self.body_now(batch)

    def whole(self, data: Sequence[bytes]) -> bytes:
        """A body that is complete already, of events as JSON."""
        return envelope.sse_frames(data, 1)

    def refusal(self, data: bytes) -> bytes:
        """The one event of a request that was refused; it has no number."""
        return envelope.sse_error_frame(data)


class ProtobufFormat:
    """One event per frame and nothing else: no numbers, which a reader counts for itself, and no sign of life."""

    media_type = PROTOBUF
    head = stream_headers(PROTOBUF)
    comment = b""

    def body_now(self, _: envelope.Batch) -> None:
        """Nothing: events are encoded once for all readers, which may take a while."""

    async def body(self, log: ReadableLog, batch: envelope.Batch) -> bytes:
        """One write: these events of this log."""
        return b"".join(await log.transcoded(_frame()).encode(batch))

    def whole(self, data: Sequence[bytes]) -> bytes:
        """A body that is complete already, of events as JSON."""
        return b"".join(map(_frame(), data))

    def refusal(self, data: bytes) -> bytes:
        """The one event of a request that was refused."""
        return _frame()(data)


def _frame() -> Callable[[bytes], bytes]:
    from agui_container.protocol.wire.protobuf.encoder import encode_frame  # noqa: PLC0415 - not before somebody asks for it

    return encode_frame


def requested_format(connection: HTTPConnection) -> Format:
    """The format that a request's ``Accept`` asks for."""
    accept = ",".join(connection.headers.getlist("accept"))
    return ProtobufFormat() if accepts_protobuf(accept) else SseFormat()


@lru_cache(maxsize=16)
def accepts_protobuf(accept: str) -> bool:
    """Whether an ``Accept`` header's value asks for protobuf. Ranges that cannot be read do not count."""
    best: dict[str, float] = {}
    for part in accept.lower().split(","):
        name, *parameters = (text.strip() for text in part.split(";"))
        quality = _quality(parameters)
        if quality is not None:
            best[name] = max(quality, best.get(name, 0.0))
    return next((best[name] > 0 for name in RANGES if name in best), False)


def _quality(parameters: list[str]) -> float | None:
    """A range's ``q``; None for a range with parameters of its own, because the media type has none."""
    if not parameters or not parameters[0]:
        return 1.0
    name, _, value = parameters[0].partition("=")
    if name.strip() != "q":
        return None
    try:
        return float(value)
    except ValueError:
        return 0.0
