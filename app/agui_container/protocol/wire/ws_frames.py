"""Envelopes to WebSocket frames: one bare event each, and adjacent deltas of one stream as one event.

Rule: nothing is lost, and what can be told by looking is not parsed. Our encoder writes a delta's text last, so two
deltas that agree in what stands before it are of one stream, and their texts are joined as they are written. An event
that looks otherwise (unknown fields, classes of one's own, ids with escapes) is parsed once to give it that shape.

Source: AgentCore's limits for WebSocket frames (docs/architecture.md).
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ag_ui.core import EventType

from agui_container.protocol.wire.envelope import Envelope

MERGED_BYTES = 30_000
"""Merged deltas stay under AgentCore's 32 KB with room for the cursor."""

DELTA_TYPES = frozenset(
    {EventType.TEXT_MESSAGE_CONTENT, EventType.TOOL_CALL_ARGS, EventType.REASONING_MESSAGE_CONTENT},
)
SIDE_FIELDS = {"metadata", "rawEvent"}
"""What belongs to one delta and not to its stream."""

KEY = b',"delta":"'
"""Behind this is the text. No string can hold it, because a quote in a string is escaped."""

END = b'"}'
PLAIN = re.compile(rb'({"type":"[A-Z_]+")(?:,"timestamp":-?\d+)?((?:,"(?!metadata"|rawEvent")\w+":"[^"\\]*")*)')
"""What stands before the text if it is nothing but names without escapes; two groups leave out the timestamp."""

HAS_SIDE_FIELD = re.compile(PLAIN.pattern + rb',"(?:metadata|rawEvent)":')


class FrameDelta(NamedTuple):
    """A delta taken apart: ``head``, its text as JSON without quotes, ``END``.

    ``stream`` is what deltas must share to be merged: the head without the timestamp.
    """

    stream: bytes
    head: bytes
    text: bytes


def make_frames(envelopes: Sequence[Envelope], *, with_seq: bool) -> list[str]:
    """Frames for what is ready, in order.

    Args:
        envelopes: what a reader has not sent yet, in order.
        with_seq: put ``metadata.seq`` into each event; of merged events, the last.
    """
    merged = _merge(envelopes) if len(envelopes) > 1 else ((each.data, each.seq) for each in envelopes)
    return [(_add_seq(data, seq) if with_seq else data).decode() for data, seq in merged]


def _merge(envelopes: Sequence[Envelope]) -> Iterator[tuple[bytes, int]]:
    """The JSON of each frame, and the number of its last event."""
    group: list[Envelope] = []
    first: FrameDelta | None = None
    texts: list[bytes] = []
    size = 0
    for envelope in envelopes:
        text = _continuation_text(first, envelope) if first else None
        if text is None or size + len(text) > MERGED_BYTES:
            if group:
                yield _join(group, first, texts)
            first = _parse_delta(envelope)
            group, texts, size = [], [], len(envelope.data)
        else:
            texts.append(text)
            size += len(text)
        group.append(envelope)
    yield _join(group, first, texts)


def _join(group: Sequence[Envelope], first: FrameDelta | None, texts: Sequence[bytes]) -> tuple[bytes, int]:
    whole = b"".join((first.head, first.text, *texts, END)) if first and texts else group[0].data
    return whole, group[-1].seq


def _continuation_text(first: FrameDelta, envelope: Envelope) -> bytes | None:
    """The text of a delta of the same stream; None of everything else."""
    text = _trailing_text(envelope.data, first.head) if envelope.data.startswith(first.head) else None
    if text is not None:
        return text
    delta = _parse_delta(envelope)
    return delta.text if delta and delta.stream == first.stream else None


def _parse_delta(envelope: Envelope) -> FrameDelta | None:
    """The parts of a delta that may be merged; None of everything else."""
    if envelope.type not in DELTA_TYPES:
        return None
    opening, key, _ = envelope.data.partition(KEY)
    looked, text = PLAIN.fullmatch(opening), _trailing_text(envelope.data, opening + key)
    if looked and text is not None:
        return FrameDelta(looked[1] + looked[2], opening + key, text)
    return None if HAS_SIDE_FIELD.match(opening) else _parse(envelope.data)


def _trailing_text(data: bytes, head: bytes) -> bytes | None:
    """The text behind ``head``, if it is the event's last field: another one would bring a quote behind a comma."""
    text = data[len(head) : -len(END)]
    return text if data.endswith(END) and text.count(b'"') == text.count(rb"\"") else None


def _parse(data: bytes) -> FrameDelta | None:
    event: dict[str, object] = json.loads(data)
    if event.keys() & SIDE_FIELDS:
        return None
    text = _json(event.pop("delta"))[1:-1]
    head = _json(event)[:-1] + KEY
    event.pop("timestamp", None)
    return FrameDelta(_json(event)[:-1], head, text)


def _add_seq(data: bytes, seq: int) -> bytes:
    if b'"metadata":' not in data:
        return b'%b,"metadata":{"seq":%d}}' % (data[:-1], seq)
    event: dict[str, object] = json.loads(data)
    metadata = event.get("metadata")
    return _json(event | {"metadata": {**(metadata if isinstance(metadata, dict) else {}), "seq": seq}})


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
