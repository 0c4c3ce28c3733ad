"""Events to bytes, once, and bytes to SSE frames; ``frames`` has those of WebSockets.

Rule: an event is encoded when it is accepted, and every reader on every transport sends those same bytes. So an event
that cannot be encoded is caught while it can still be refused, and nothing an agent does to it later matters.

Source: AG-UI spec 1.1, basic/transports/http-sse (one event per frame, LF framing: the official client splits on LF LF
only).
"""

from collections.abc import Iterable
from typing import NamedTuple

from ag_ui.core import BaseEvent, EventType

from app.core.encoder import encoded
from app.core.errors import AppError, Code, IllegalEvent

MAX_EVENT_BYTES = 8_000_000
"""Bytes of one encoded event. The official client gives up on a frame above 10 MB."""

MAX_CURSOR_DIGITS = 15


class Envelope(NamedTuple):
    """An accepted event. ``seq`` counts from 1 within the run; ``data`` is its UTF-8 JSON, without line breaks."""

    run_id: str
    seq: int
    type: EventType
    data: bytes


def encode(event: BaseEvent) -> bytes:
    """The event's JSON, byte for byte what the official ``EventEncoder`` puts behind ``data:``.

    Raises:
        IllegalEvent: a field holds what its type does not allow or what JSON cannot carry, or the event is too large.
    """
    data = encoded(event)
    if len(data) > MAX_EVENT_BYTES:
        raise IllegalEvent(f"{type(event).__name__} has {len(data)} bytes, more than {MAX_EVENT_BYTES}")
    return data


def sse(envelopes: Iterable[Envelope]) -> bytes:
    """SSE frames for one write: ``id: SEQ``, ``data: JSON``, an empty line."""
    return b"".join(b"id: %d\ndata: %b\n\n" % (envelope.seq, envelope.data) for envelope in envelopes)


def sse_refusal(data: bytes) -> bytes:
    """The one frame of a request that was refused; it has no ``id`` because it belongs to no run."""
    return b"data: %b\n\n" % data


def cursor(text: str | None) -> int:
    """The ``seq`` after which to read, from ``?after=`` or ``Last-Event-ID``; absent or empty is 0.

    Raises:
        AppError: VALIDATION_ERROR for anything but a whole number.
    """
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > MAX_CURSOR_DIGITS:
        raise AppError(Code.VALIDATION_ERROR, "after: expected the number of the last event that was received.")
    return int(text)
