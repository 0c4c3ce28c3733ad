"""Events to bytes, once, and bytes to frames.

Rule: an event is encoded when it is accepted, and every reader on every transport sends those same bytes. So an event
that cannot be encoded is caught while it can still be refused, and nothing an agent does to it later matters.

Sources: AG-UI spec 1.1, basic/transports/http-sse (one event per frame, LF framing: the official client splits on LF LF
only); AgentCore's limits for WebSocket frames (reference 1.8).
"""

import json
from collections.abc import Iterable, Sequence
from itertools import count
from typing import NamedTuple

from ag_ui.core import EventType

from app.core.errors import AppError, Code

MAX_CURSOR_DIGITS = 15

MERGED_BYTES = 30_000
"""Merged deltas stay under AgentCore's 32 KB with room for the cursor."""

DELTA_TYPES = frozenset(
    {EventType.TEXT_MESSAGE_CONTENT, EventType.TOOL_CALL_ARGS, EventType.REASONING_MESSAGE_CONTENT},
)


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


def sse(data: Iterable[bytes], first: int) -> bytes:
    """SSE frames for one write: ``id: SEQ``, ``data: JSON``, an empty line. ``first`` is the first event's ``seq``."""
    return b"".join([b"id: %d\ndata: %b\n\n" % numbered for numbered in enumerate(data, first)])


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


def frames(envelopes: Sequence[Envelope], *, with_seq: bool) -> list[str]:
    """WebSocket frames for what is ready, one bare event each; adjacent deltas of one stream become one event.

    Args:
        envelopes: what a reader has not sent yet, in order.
        with_seq: put ``metadata.seq`` into each event; of merged events, the last.
    """
    if len(envelopes) == 1 and not with_seq:
        return [envelopes[0].data.decode()]
    return [_frame(group, with_seq=with_seq) for group in _grouped(envelopes)]


def _grouped(envelopes: Sequence[Envelope]) -> list[list[Envelope]]:
    """Runs of deltas that may be merged; everything else alone."""
    groups: list[list[Envelope]] = []
    size = 0
    head: dict[str, object] | None = None
    for envelope in envelopes:
        rest = _without_delta(envelope)
        if rest is not None and rest == head and size + len(envelope.data) <= MERGED_BYTES:
            groups[-1].append(envelope)
            size += len(envelope.data)
        else:
            groups.append([envelope])
            head, size = rest, len(envelope.data)
    return groups


def _without_delta(envelope: Envelope) -> dict[str, object] | None:
    """What two deltas must share to be merged; None where merging would lose something."""
    if envelope.type not in DELTA_TYPES:
        return None
    event: dict[str, object] = json.loads(envelope.data)
    event.pop("delta", None)
    event.pop("timestamp", None)
    return None if {"metadata", "rawEvent"} & event.keys() else event


def _frame(group: Sequence[Envelope], *, with_seq: bool) -> str:
    if len(group) == 1 and not with_seq:
        return group[0].data.decode()
    event: dict[str, object] = json.loads(group[0].data)
    if len(group) > 1:
        event["delta"] = "".join(json.loads(envelope.data)["delta"] for envelope in group)
    if with_seq:
        metadata = event.get("metadata")
        event["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), "seq": group[-1].seq}
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))
