"""Turns what an agent yields into events the order tables know: chunks and strings into START, CONTENT, END.

Rule: after ``Expander`` no ``*_CHUNK`` is left, and no delta is longer than ``MAX_DELTA`` characters. What is open is
what was accepted: an item that is refused opens nothing, and ends only what it has ended before it was refused.

Chunks work in lanes, one per ``subagentRunId``. A lane holds at most one open stream; another stream or any explicit
event of the same owner ends it, and RUN_* and MESSAGES_SNAPSHOT end all. An id-less chunk continues the one stream it
can mean. A plain string is a chunk of assistant text that needs no id. Source: AG-UI spec 1.1,
basic/patterns/streaming#the-chunked-form, and the chunk layer of ``@ag-ui/client`` 1.0.0.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    BaseEvent,
    MessagesSnapshotEvent,
    RawEvent,
    ReasoningEncryptedValueEvent,
    ReasoningMessageContentEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    SubagentStartedEvent,
    TextMessageContentEvent,
    ToolCallArgsEvent,
)
from pydantic import ValidationError

from app.core.errors import IllegalEvent
from app.core.lanes import CHUNKS, NONE_OPEN, TEXT, Chunk, ChunkEvent, Stream
from app.core.perclass import PerClass
from app.core.pieces import MAX_DELTA, split
from app.core.said import Said

CLOSES_ALL = (RunStartedEvent, RunFinishedEvent, RunErrorEvent, MessagesSnapshotEvent)
CLOSES_NONE = (
    RawEvent,
    ActivitySnapshotEvent,
    ActivityDeltaEvent,
    ReasoningEncryptedValueEvent,
    SubagentStartedEvent,
)
DELTAS = (TextMessageContentEvent, ToolCallArgsEvent, ReasoningMessageContentEvent)


class Expander:
    """Expands the items of one run, in order.

    Args:
        new_id: makes the message ids of strings.
    """

    __slots__ = ("_before", "_lanes", "_new_id")

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._lanes = NONE_OPEN
        """What is open."""
        self._before = NONE_OPEN

    def expand(self, item: BaseEvent | Said | str) -> list[BaseEvent]:
        """The events that ``item`` stands for. Raises ``IllegalEvent`` for what is neither text nor a usable event."""
        self._before = self._lanes
        try:
            return EXPANSIONS[type(item)](self, item)
        except Exception as error:
            self._lanes = self._before
            if isinstance(error, ValidationError):
                raise IllegalEvent(f"{type(item).__name__} is none that the protocol knows: {error}") from error
            raise

    def rollback(self, accepted: Sequence[BaseEvent]) -> None:
        """Undo the last ``expand`` for the events that were not accepted.

        Afterwards open is what the accepted ones leave open.
        """
        still_open = {owner: it for owner, it in self._before.items() if not _is_among(accepted, it.chunk.end, it)}
        opened = {owner: it for owner, it in self._lanes.items() if _is_among(accepted, it.chunk.start, it)}
        self._lanes = still_open | opened

    def flush(self) -> list[BaseEvent]:
        """Ends every open chunk stream; a chunk has no end of its own."""
        lanes, self._lanes = self._lanes, NONE_OPEN
        return [_build(stream.chunk.end, stream, {}) for stream in lanes.values()]

    def whole(self, event: BaseEvent) -> list[BaseEvent]:
        """Of an event that is sent as it is."""
        return [*self._closed_by(event), event] if self._lanes else [event]

    def delta(self, event: BaseEvent) -> list[BaseEvent]:
        """Of a delta, which may be too long."""
        delta = event.__dict__.get("delta")  # whatever it is: what has none is refused when it is encoded
        events = split(event) if isinstance(delta, str) and len(delta) > MAX_DELTA else [event]
        return [*self._closed_by(event), *events] if self._lanes else events

    # --- lanes ---

    def _closed_by(self, event: BaseEvent) -> list[BaseEvent]:
        if isinstance(event, CLOSES_ALL):
            return self.flush()
        if isinstance(event, CLOSES_NONE):
            return []
        return self._close(getattr(event, "subagent_run_id", None))

    def _close(self, owner: str | None) -> list[BaseEvent]:
        stream = self._lanes.get(owner)
        if stream is None:
            return []
        self._lanes = {other: open_one for other, open_one in self._lanes.items() if other != owner}
        return [_build(stream.chunk.end, stream, {})]

    def _lane(self, chunk: Chunk, key: str | None, tag: str | None) -> str | None:
        """Which lane a chunk belongs to."""
        if key is not None:
            holder = next((s for s in self._lanes.values() if s.chunk is chunk and s.key == key), None)
            if holder is None:
                return tag
            if tag not in (None, holder.owner):
                raise IllegalEvent(f"a chunk of {chunk.noun} {key!r} is tagged {tag!r}, its stream {holder.owner!r}")
            return holder.owner
        if tag is not None:
            return tag
        owners = [owner for owner, stream in self._lanes.items() if stream.chunk is chunk]
        if None in owners or not owners:
            return None
        if len(owners) > 1:
            raise IllegalEvent(f"a chunk without an id could continue {len(owners)} open {chunk.noun} streams")
        return owners[0]

    # --- chunks ---

    def chunk(self, event: ChunkEvent, chunk: Chunk) -> list[BaseEvent]:
        """Of a chunk."""
        key: str | None = getattr(event, chunk.id_field)
        lane = self._lane(chunk, key, event.subagent_run_id)
        stream = self._lanes.get(lane)
        opening: list[BaseEvent] = []
        if stream is not None and stream.chunk is chunk and key in (None, stream.key):
            _require_agreement(stream, event)
        else:
            opening = self._close(lane)
            stream = self._open(lane, chunk, event)
            fields = {**stream.fields, "timestamp": event.timestamp, "metadata": event.metadata}
            opening.append(_build(chunk.start, stream, fields))
        return self._with_content(opening, stream, event)

    def _open(self, lane: str | None, chunk: Chunk, event: ChunkEvent) -> Stream:
        for name in (chunk.id_field, *chunk.required):
            if getattr(event, name) is None:
                raise IllegalEvent(f"the first {type(event).__name__} of a stream has no {name}")
        fields: dict[str, str | None] = {name: getattr(event, name) for name in chunk.opener_fields}
        if "role" in fields:
            fields["role"] = fields["role"] or "assistant"
        stream = Stream(chunk, getattr(event, chunk.id_field), event.subagent_run_id, fields)
        self._lanes = {**self._lanes, lane: stream}
        return stream

    def _with_content(self, opening: list[BaseEvent], stream: Stream, event: ChunkEvent) -> list[BaseEvent]:
        """Adds the content event, if the chunk carries anything the opener does not."""
        extra = event.model_extra or {}
        has_aside = event.metadata is not None or bool(extra)
        if event.delta is None and event.raw_event is None and (opening or not has_aside):
            return opening
        fields = {
            **extra,
            "delta": event.delta or "",
            "timestamp": event.timestamp,
            "metadata": event.metadata,
            "raw_event": event.raw_event,
        }
        return [*opening, *split(_build(stream.chunk.content, stream, fields))]

    # --- strings ---

    def text(self, text: str) -> list[BaseEvent]:
        """Of a plain string."""
        if not text:
            return []
        stream = self._lanes.get(None)
        opening: list[BaseEvent] = []
        if stream is None or stream.chunk is not TEXT or stream.fields["role"] != "assistant":
            opening = self._close(None)
            stream = Stream(TEXT, self._new_id(), None, {"role": "assistant", "name": None})
            self._lanes = {**self._lanes, None: stream}
            opening.append(_build(TEXT.start, stream, stream.fields))
        return [*opening, *split(TextMessageContentEvent(message_id=stream.key, delta=text))]

    def said(self, said: Said) -> list[BaseEvent]:
        """Of text by its message's id. Raises ``IllegalEvent`` for what are no texts."""
        try:
            return self.delta(TextMessageContentEvent(message_id=said.message_id, delta=said.delta))
        except ValidationError as error:
            raise IllegalEvent(f"{error.errors()[0]['loc'][0]} of text is not a string") from None


Expansion = Callable[..., list[BaseEvent]]
"""A method of ``Expander`` that takes an item."""


def expansion_of(kind: type) -> Expansion:
    """How items of one class expand. Raises ``IllegalEvent`` for what is neither text nor an event."""
    if issubclass(kind, str):
        return Expander.text
    if issubclass(kind, Said):
        return Expander.said
    if not issubclass(kind, BaseEvent):
        raise IllegalEvent(f"{kind.__name__} is neither an AG-UI event nor a string")
    for base, chunk in CHUNKS.items():
        if issubclass(kind, base):
            return partial(Expander.chunk, chunk=chunk)
    return Expander.delta if issubclass(kind, DELTAS) else Expander.whole


EXPANSIONS = PerClass(expansion_of)


def _require_agreement(stream: Stream, event: ChunkEvent) -> None:
    for name, established in stream.fields.items():
        if getattr(event, name) not in (None, established):
            raise IllegalEvent(f"a chunk of {stream.chunk.noun} {stream.key!r} changes its {name}")


def _is_among(events: Sequence[BaseEvent], kind: type[BaseEvent], stream: Stream) -> bool:
    """Whether the stream's start, or its end, is one of these."""
    return any(isinstance(event, kind) and getattr(event, stream.chunk.id_field) == stream.key for event in events)


def _build(kind: type[BaseEvent], stream: Stream, fields: Mapping[str, object]) -> BaseEvent:
    return kind.model_validate({**fields, stream.chunk.id_field: stream.key, "subagent_run_id": stream.owner})
