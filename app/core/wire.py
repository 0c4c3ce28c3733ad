"""What readers get: encoded events by number, and their frames for SSE; ``frames`` has those of WebSockets.

Rule: an event is encoded when it is accepted, and every reader on every transport sends those same bytes. So an event
that cannot be encoded is caught while it can still be refused, and nothing an agent does to it later matters.

Source: AG-UI spec 1.1, basic/transports/http-sse (one event per frame, LF framing: the official client splits on LF LF
only).
"""

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple, Protocol

from ag_ui.core import EventType

from app.core.errors import AppError, Code

MAX_CURSOR_DIGITS = 15
OPENING = b"id: %d\ndata: "
CLOSING = b"\n\n"
MANY = 4_096
"""Of so many events the frames' openings are kept, for all runs alike."""

OPENINGS = [OPENING % number for number in range(MANY)]
"""Made before anybody waits for a frame."""


class Envelope(NamedTuple):
    """An accepted event. ``seq`` counts from 1 within the run; ``data`` is its UTF-8 JSON, without line breaks."""

    run_id: str
    seq: int
    type: EventType
    data: bytes


class Batch(NamedTuple):
    """Envelopes of one run that follow one another. Kept apart in lists, because a run can have many.

    Attributes:
        first: the first one's ``seq``.
        types, data: of each, in order.
    """

    run_id: str
    first: int
    types: Sequence[EventType]
    data: Sequence[bytes]

    def envelopes(self) -> list[Envelope]:
        """One by one."""
        numbered = zip(count(self.first), self.types, self.data, strict=False)
        return [Envelope(self.run_id, seq, event_type, data) for seq, event_type, data in numbered]


class Taker(Protocol):
    """Takes events at once."""

    def take(self, data: Sequence[bytes], first: int) -> bool:
        """Take their JSON, or say that it cannot; ``first`` is the first one's ``seq``. Raises nothing."""

    def read_on(self) -> None:
        """There is something that it was not offered or has not taken, or there will be nothing more."""


def sse(data: Sequence[bytes], first: int) -> bytes:
    """SSE frames for one write: ``id: SEQ``, ``data: JSON``, an empty line. ``first`` is the first event's ``seq``."""
    count = len(data)
    if count == 1:  # a token that comes alone: without the lists this takes a third
        return b"".join((OPENINGS[first] if first < MANY else OPENING % first, data[0], CLOSING))
    pieces = [CLOSING] * (3 * count)
    pieces[::3], pieces[1::3] = openings(first, count), data
    return b"".join(pieces)


def openings(first: int, count: int) -> list[bytes]:
    """What stands before the data of so many events: to write a number takes longer than all else of a frame."""
    end = first + count
    return OPENINGS[first:end] if end <= MANY else [OPENING % seq for seq in range(first, end)]


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
