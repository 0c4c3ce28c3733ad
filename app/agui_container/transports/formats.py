"""Event formats over HTTP, Server-Sent Events and protobuf frames, and the choice between them.

Rule: a request gets protobuf if its ``Accept`` header names protobuf, or ``application/*``, with a quality above 0. All
other requests get SSE. The order of preference between the two does not matter. A bare ``*/*`` gets SSE, because
AgentCore's contract promises SSE to clients that name no type (decision 0017).

Sources: AG-UI spec 1.1, basic/transports/http-protobuf#negotiation and http-sse; RFC 9110, section 12.5.1.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import HTTPConnection

from agui_container.protocol.wire import envelope
from agui_container.protocol.wire.sse_frames import sse_error_frame, sse_frames

EVENT_STREAM = "text/event-stream"
PROTOBUF = "application/vnd.ag-ui.event+proto"
"""The complete Content-Type. With parameters behind it, the official client would read the body as SSE."""

HEADERS = {"Cache-Control": "no-cache, no-transform", "Vary": "Accept", "X-Accel-Buffering": "no"}

PROTOBUF_BYTES = 20_000
"""Bytes of JSON up to which a batch is encoded on the event loop: a kilobyte takes about a tenth of a millisecond."""

RANGES = (PROTOBUF, "application/*")
"""Media ranges that admit protobuf, the most specific first. The first one that a request names decides."""

RawHeaders = tuple[tuple[bytes, bytes], ...]
"""Headers in the form of ASGI: pairs of name and value."""


def stream_headers(media_type: str) -> RawHeaders:
    """Return the headers of a streaming response, without ``Connection``, which the server sets.

    The formats call this at import, because a call on the event loop would import a part of anyio there.
    """
    response = EventSourceResponse(iter(()), headers=HEADERS, media_type=media_type)
    return tuple(header for header in response.raw_headers if header[0] != b"connection")


class Format(Protocol):
    """An encoding of events for HTTP bodies."""

    media_type: str
    headers: RawHeaders
    """Headers of a streaming response, without the request id."""
    comment: bytes
    """Bytes that keep a silent stream alive. Empty if the format has no comments."""

    def body_now(self, batch: envelope.Batch) -> bytes | None:
        """Encode a batch, or return None if encoding may take long."""

    def body(self, batch: envelope.Batch) -> bytes:
        """Encode a batch. May be called in a worker thread."""

    def complete_body(self, data: Sequence[bytes]) -> bytes:
        """Encode a complete body from events in JSON."""

    def error_body(self, data: bytes) -> bytes:
        """Encode the RUN_ERROR event, in JSON, of a refused request."""


class SseFormat:
    """Server-Sent Events. The field ``id`` is the event's number in its run."""

    media_type = EVENT_STREAM
    headers = stream_headers(EVENT_STREAM)
    comment = ServerSentEvent(comment="keep-alive", sep="\n").encode()

    def body_now(self, batch: envelope.Batch) -> bytes | None:
        """Encode a batch."""
        return sse_frames(batch.data, batch.first)

    def body(self, batch: envelope.Batch) -> bytes:
        """Encode a batch."""
        return sse_frames(batch.data, batch.first)

    def complete_body(self, data: Sequence[bytes]) -> bytes:
        """Encode a complete body from events in JSON."""
        return sse_frames(data, 1)

    def error_body(self, data: bytes) -> bytes:
        """Encode the error of a refused request, without an ``id``."""
        return sse_error_frame(data)


class ProtobufFormat:
    """Protobuf frames, one event each. The format has neither event numbers nor comments; readers count the events."""

    media_type = PROTOBUF
    headers = stream_headers(PROTOBUF)
    comment = b""

    def body_now(self, batch: envelope.Batch) -> bytes | None:
        """Encode a batch, or return None if it is large."""
        return self.body(batch) if sum(map(len, batch.data)) <= PROTOBUF_BYTES else None

    def body(self, batch: envelope.Batch) -> bytes:
        """Encode a batch."""
        return self.complete_body(batch.data)

    def complete_body(self, data: Sequence[bytes]) -> bytes:
        """Encode a complete body from events in JSON."""
        return b"".join(map(_frame_encoder(), data))

    def error_body(self, data: bytes) -> bytes:
        """Encode the error of a refused request."""
        return _frame_encoder()(data)


def _frame_encoder() -> Callable[[bytes], bytes]:
    from agui_container.protocol.wire.protobuf.encoder import encode_frame  # noqa: PLC0415 - most processes need none

    return encode_frame


def requested_format(connection: HTTPConnection) -> Format:
    """Return the format that a request's ``Accept`` headers ask for."""
    accept = ",".join(connection.headers.getlist("accept"))
    return ProtobufFormat() if accepts_protobuf(accept) else SseFormat()


def names_event_format(connection: HTTPConnection) -> bool:
    """True if a request's ``Accept`` headers name an event format, as AG-UI clients do."""
    return names_media_type(connection, EVENT_STREAM, PROTOBUF)


def names_media_type(connection: HTTPConnection, *types: str) -> bool:
    """True if a request's ``Accept`` headers name one of these media types. ``*/*`` names none."""
    qualities = _qualities(",".join(connection.headers.getlist("accept")))
    return any(qualities.get(name, 0.0) > 0 for name in types)


def accepts_protobuf(accept: str) -> bool:
    """True if the value of an ``Accept`` header asks for protobuf."""
    qualities = _qualities(accept)
    return next((qualities[name] > 0 for name in RANGES if name in qualities), False)


@lru_cache(maxsize=16)
def _qualities(accept: str) -> Mapping[str, float]:
    """Return the best quality of each media range in the value of an ``Accept`` header, without malformed ranges."""
    best: dict[str, float] = {}
    for part in accept.lower().split(","):
        name, *parameters = (text.strip() for text in part.split(";"))
        quality = _quality(parameters)
        if quality is not None:
            best[name] = max(quality, best.get(name, 0.0))
    return best


def _quality(parameters: list[str]) -> float | None:
    """Return the ``q`` of a media range.

    None if the range has parameters of its own, because the media type of protobuf has none.
    """
    if not parameters or not parameters[0]:
        return 1.0
    name, _, value = parameters[0].partition("=")
    if name.strip() != "q":
        return None
    try:
        return float(value)
    except ValueError:
        return 0.0
