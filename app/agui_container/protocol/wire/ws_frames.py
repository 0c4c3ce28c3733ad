"""WebSocket frames: one event per frame, with adjacent deltas of one stream merged into one event.

Rule: no text is lost, and JSON is parsed only if necessary. The encoder writes the text of a delta as the last field.
Two deltas with equal bytes before the text belong to one stream, and their texts are joined as encoded bytes. A delta
in another form (unknown fields, classes outside ``ag_ui.core``, ids with escapes) is parsed and encoded in this form.

Source: AgentCore's limits for WebSocket frames (docs/architecture.md).
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ag_ui.core import EventType

from agui_container.protocol.wire.envelope import Envelope

MERGED_BYTES = 30_000
"""Maximum bytes of merged deltas: AgentCore's limit of 32 KB, with room for the cursor."""

DELTA_TYPES = frozenset(
    {EventType.TEXT_MESSAGE_CONTENT, EventType.TOOL_CALL_ARGS, EventType.REASONING_MESSAGE_CONTENT},
)
SIDE_FIELDS = {"metadata", "rawEvent"}
"""Fields that describe a single delta. A delta with one of them is not merged."""

KEY = b',"delta":"'
"""Bytes before the text. They cannot occur inside a string, because a quote in a string is escaped."""

END = b'"}'
PLAIN = re.compile(rb'({"type":"[A-Z_]+")(?:,"timestamp":-?\d+)?((?:,"(?!metadata"|rawEvent")\w+":"[^"\\]*")*)')
"""The fields before the text, if their values have no escapes. The two groups omit the timestamp."""

HAS_SIDE_FIELD = re.compile(PLAIN.pattern + rb',"(?:metadata|rawEvent)":')


class FrameDelta(NamedTuple):
    """Parts of an encoded delta: ``head``, text, ``END``. Deltas with an equal ``stream`` may be merged."""

    stream: bytes
    head: bytes
    text: bytes


def make_frames(envelopes: Sequence[Envelope], *, with_seq: bool) -> list[str]:
    """Return the frames, in order. A merged event gets the ``seq`` of its last delta."""
    merged = _merge(envelopes) if len(envelopes) > 1 else ((each.data, each.seq) for each in envelopes)
    return [(_add_seq(data, seq) if with_seq else data).decode() for data, seq in merged]


def _merge(envelopes: Sequence[Envelope]) -> Iterator[tuple[bytes, int]]:
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
    data = b"".join((first.head, first.text, *texts, END)) if first and texts else group[0].data
    return data, group[-1].seq


def _continuation_text(first: FrameDelta, envelope: Envelope) -> bytes | None:
    """Return the text if the envelope is a delta of the same stream as ``first``, else None."""
    text = _trailing_text(envelope.data, first.head) if envelope.data.startswith(first.head) else None
    if text is not None:
        return text
    delta = _parse_delta(envelope)
    return delta.text if delta and delta.stream == first.stream else None


def _parse_delta(envelope: Envelope) -> FrameDelta | None:
    if envelope.type not in DELTA_TYPES:
        return None
    opening, key, _ = envelope.data.partition(KEY)
    fields, text = PLAIN.fullmatch(opening), _trailing_text(envelope.data, opening + key)
    if fields and text is not None:
        return FrameDelta(fields[1] + fields[2], opening + key, text)
    return None if HAS_SIDE_FIELD.match(opening) else _parse(envelope.data)


def _trailing_text(data: bytes, head: bytes) -> bytes | None:
    """Return the text after ``head`` if it is the last field, else None. A further field would add a bare quote."""
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
