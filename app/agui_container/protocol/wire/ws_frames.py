"""WebSocket frames: one event per frame, with adjacent deltas of one stream merged into one event.

Rule: no text is lost. Deltas belong to one stream if all their fields but ``delta`` and ``timestamp`` are equal.

Source: AgentCore's limits for WebSocket frames (docs/architecture.md).
"""

from collections.abc import Iterator, Sequence

from ag_ui.core import EventType
from pydantic_core import from_json, to_json

from agui_container.protocol.wire.envelope import Envelope

MERGED_BYTES = 30_000
"""Maximum bytes of merged deltas: AgentCore's limit of 32 KB, with room for the cursor."""

DELTA_TYPES = frozenset(
    {EventType.TEXT_MESSAGE_CONTENT, EventType.TOOL_CALL_ARGS, EventType.REASONING_MESSAGE_CONTENT},
)
SIDE_FIELDS = {"metadata", "rawEvent"}
"""Fields that describe a single delta. A delta with one of them is not merged."""

Stream = list[tuple[str, object]]
"""The fields that the deltas of one stream have in common."""


def make_frames(envelopes: Sequence[Envelope], *, with_seq: bool) -> list[str]:
    """Return the frames, in order. A merged event gets the ``seq`` of its last delta."""
    merged = _merge(envelopes) if len(envelopes) > 1 else ((each.data, each.seq) for each in envelopes)
    return [(_add_seq(data, seq) if with_seq else data).decode() for data, seq in merged]


def _merge(envelopes: Sequence[Envelope]) -> Iterator[tuple[bytes, int]]:
    group: list[Envelope] = []
    texts: list[str] = []
    stream: Stream | None = None
    size = 0
    for envelope in envelopes:
        next_stream, text = _read_delta(envelope)
        added = len(to_json(text)) - len(b'""')
        if next_stream is None or next_stream != stream or size + added > MERGED_BYTES:
            if group:
                yield _join(group, texts)
            group, texts, stream, size = [], [], next_stream, len(envelope.data) - added
        group.append(envelope)
        texts.append(text)
        size += added
    yield _join(group, texts)


def _read_delta(envelope: Envelope) -> tuple[Stream | None, str]:
    """Return the stream and the text of a delta. The stream of an event that cannot be merged is None."""
    if envelope.type not in DELTA_TYPES:
        return None, ""
    event: dict[str, object] = from_json(envelope.data)
    text = str(event.pop("delta"))
    event.pop("timestamp", None)
    return None if event.keys() & SIDE_FIELDS else list(event.items()), text


def _join(group: Sequence[Envelope], texts: Sequence[str]) -> tuple[bytes, int]:
    first, last = group[0], group[-1]
    return first.data if first is last else to_json({**from_json(first.data), "delta": "".join(texts)}), last.seq


def _add_seq(data: bytes, seq: int) -> bytes:
    if b'"metadata":' not in data:
        return b'%b,"metadata":{"seq":%d}}' % (data[:-1], seq)
    event: dict[str, object] = from_json(data)
    metadata = event.get("metadata")
    return to_json(event | {"metadata": {**(metadata if isinstance(metadata, dict) else {}), "seq": seq}})
