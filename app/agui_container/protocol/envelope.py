"""Envelopes of encoded events. Transports make frames of them.

Rule: an event is encoded once, when it is accepted, and every transport sends these bytes. An event that cannot be
encoded is therefore refused in time, and an agent cannot change an event after it was accepted.
"""

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from ag_ui.core import EventType

from agui_container.protocol.errors import validation_error

MAX_CURSOR_DIGITS = 15
"""Maximum number of digits of a cursor."""


class Envelope(NamedTuple):
    """An accepted event. ``seq`` counts from 1 within the run. ``data`` is UTF-8 JSON without line breaks."""

    run_id: str
    seq: int
    type: EventType
    data: bytes


class Batch(NamedTuple):
    """Consecutive envelopes of one run, as columns. An empty batch is a keep-alive."""

    run_id: str
    first: int
    types: Sequence[EventType]
    data: Sequence[bytes]

    def envelopes(self) -> list[Envelope]:
        numbered = zip(count(self.first), self.types, self.data, strict=False)
        return [Envelope(self.run_id, seq, event_type, data) for seq, event_type, data in numbered]


def parse_cursor(text: str | None) -> int:
    """Return ``?after=`` or ``Last-Event-ID`` as ``seq``, 0 for None or "". Raises ``AppError`` VALIDATION_ERROR."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > MAX_CURSOR_DIGITS:
        raise validation_error("after: expected the number of the last event that was received.")
    return int(text)
