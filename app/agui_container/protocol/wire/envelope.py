"""What readers get: encoded events by number, and their frames for SSE; ``make_frames`` has those of WebSockets.

Rule: an event is encoded when it is accepted, and every reader on every transport sends those same bytes. So an event
that cannot be encoded is caught while it can still be refused, and nothing an agent does to it later matters.

Source: AG-UI spec 1.1, basic/transports/http-sse (one event per frame, LF framing: the official client splits on LF LF
only).
"""

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from ag_ui.core import EventType

from agui_container.protocol.errors import AppError, ErrorCode

MAX_CURSOR_DIGITS = 15


class Envelope(NamedTuple):
    """An accepted event. ``seq`` counts from 1 within the run; ``data`` is its UTF-8 JSON, without line breaks."""

    run_id: str
    seq: int
    type: EventType
    data: bytes


class Batch(NamedTuple):
    """Consecutive envelopes of one run, as columns. An empty batch is a sign of life.

    Attributes:
        first: the first one's ``seq``.
        types: the type of each event.
        data: the JSON of each event.
    """

    run_id: str
    first: int
    types: Sequence[EventType]
    data: Sequence[bytes]

    def envelopes(self) -> list[Envelope]:
        """One by one."""
        numbered = zip(count(self.first), self.types, self.data, strict=False)
        return [Envelope(self.run_id, seq, event_type, data) for seq, event_type, data in numbered]


def sse_frames(data: Sequence[bytes], first: int) -> bytes:
    """SSE frames for one write: ``id: SEQ``, ``data: JSON``, an empty line. ``first`` is the first event's ``seq``."""
    return b"".join([b"id: %d\ndata: %b\n\n" % numbered for numbered in enumerate(data, first)])


def sse_error_frame(data: bytes) -> bytes:
    """The one frame of a request that was refused; it has no ``id`` because it belongs to no run."""
    return b"data: %b\n\n" % data


def parse_cursor(text: str | None) -> int:
    """The ``seq`` after which to read, from ``?after=`` or ``Last-Event-ID``; absent or empty is 0.

    Raises:
        AppError: VALIDATION_ERROR for anything but a whole number.
    """
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > MAX_CURSOR_DIGITS:
        raise AppError(ErrorCode.VALIDATION_ERROR, "after: expected the number of the last event that was received.")
    return int(text)
