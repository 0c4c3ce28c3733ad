"""What chunks open: how each class of chunk expands, and the streams that are open, one in a lane.

Rule: what is open is never changed but put anew, so that it can be taken back.

A long delta in pieces.

Rule: no delta that leaves is longer than ``MAX_DELTA`` characters, so every text or argument event fits a WebSocket
frame of AgentCore (docs/architecture.md) on whatever transport it leaves.

Turns what an agent yields into events the order tables know: chunks and strings into START, CONTENT, END.

Rule: after ``Expander`` no ``*_CHUNK`` is left, and no delta is longer than ``MAX_DELTA`` characters. What is open is
what was accepted: an item that is refused opens nothing, and ends only what it has ended before it was refused.

Chunks work in lanes, one per ``subagentRunId``. A lane holds at most one open stream; another stream or any explicit
event of the same owner ends it, and RUN_* and MESSAGES_SNAPSHOT end all. An id-less chunk continues the one stream it
can mean. A plain string is a chunk of assistant text that needs no id. Source: AG-UI spec 1.1,
basic/patterns/streaming#the-chunked-form, and the chunk layer of ``@ag-ui/client`` 1.0.0.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    BaseEvent,
    MessagesSnapshotEvent,
    RawEvent,
    ReasoningEncryptedValueEvent,
    ReasoningMessageChunkEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    SubagentStartedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from msgspec import Struct
from pydantic import ValidationError

from agui_container.protocol.errors import IllegalEvent
from agui_container.protocol.message_text import MessageText
from agui_container.protocol.type_cache import TypeCache

ChunkEvent = TextMessageChunkEvent | ToolCallChunkEvent | ReasoningMessageChunkEvent


class ChunkSpec(Struct, frozen=True, eq=False):
    """How one chunk class expands: the field of its id, the opener's other fields, and the three classes."""

    noun: str
    id_field: str
    opener_fields: tuple[str, ...]
    required: tuple[str, ...]
    start: type[BaseEvent]
    content: type[BaseEvent]
    end: type[BaseEvent]


TEXT = ChunkSpec(
    noun="text message",
    id_field="message_id",
    opener_fields=("role", "name"),
    required=(),
    start=TextMessageStartEvent,
    content=TextMessageContentEvent,
    end=TextMessageEndEvent,
)
CHUNKS: dict[type[BaseEvent], ChunkSpec] = {
    TextMessageChunkEvent: TEXT,
    ToolCallChunkEvent: ChunkSpec(
        noun="tool call",
        id_field="tool_call_id",
        opener_fields=("tool_call_name", "parent_message_id"),
        required=("tool_call_name",),
        start=ToolCallStartEvent,
        content=ToolCallArgsEvent,
        end=ToolCallEndEvent,
    ),
    ReasoningMessageChunkEvent: ChunkSpec(
        noun="reasoning message",
        id_field="message_id",
        opener_fields=(),
        required=(),
        start=ReasoningMessageStartEvent,
        content=ReasoningMessageContentEvent,
        end=ReasoningMessageEndEvent,
    ),
}


class ChunkStream(Struct, frozen=True):
    """The open stream of a lane."""

    chunk: ChunkSpec
    key: str
    owner: str | None
    fields: dict[str, str | None]


OpenStreams = Mapping[str | None, ChunkStream]
"""By owner."""

NO_STREAMS: OpenStreams = MappingProxyType({})


MAX_DELTA = 5_000
"""Characters per delta. One character takes at most 6 bytes of JSON, so 30 KB."""


def split_delta(event: BaseEvent) -> list[BaseEvent]:
    """A delta, or the same as several events where it is longer than ``MAX_DELTA``.

    Only the first piece keeps ``rawEvent`` and ``metadata``: they describe the whole.
    """
    delta: str = event.__dict__["delta"]
    if len(delta) <= MAX_DELTA:
        return [event]
    first, *rest = (delta[at : at + MAX_DELTA] for at in range(0, len(delta), MAX_DELTA))
    bare = {"raw_event": None, "metadata": None}
    return [
        event.model_copy(update={"delta": first}),
        *(event.model_copy(update={"delta": piece, **bare}) for piece in rest),
    ]


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

    __slots__ = ("_before", "_new_id", "_streams")

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._streams = NO_STREAMS
        """What is open."""
        self._before = NO_STREAMS

    def expand(self, item: BaseEvent | MessageText | str) -> list[BaseEvent]:
        """The events that ``item`` stands for. Raises ``IllegalEvent`` for what is neither text nor a usable event."""
        self._before = self._streams
        try:
            return EXPANSIONS[type(item)](self, item)
        except Exception as error:
            self._streams = self._before
            if isinstance(error, ValidationError):
                raise IllegalEvent(f"{type(item).__name__} is none that the protocol knows: {error}") from error
            raise

    def rollback(self, accepted: Sequence[BaseEvent]) -> None:
        """Undo the last ``expand`` for the events that were not accepted.

        Afterwards open is what the accepted ones leave open.
        """
        still_open = {owner: it for owner, it in self._before.items() if not _is_among(accepted, it.chunk.end, it)}
        opened = {owner: it for owner, it in self._streams.items() if _is_among(accepted, it.chunk.start, it)}
        self._streams = still_open | opened

    def flush(self) -> list[BaseEvent]:
        """Ends every open chunk stream; a chunk has no end of its own."""
        lanes, self._streams = self._streams, NO_STREAMS
        return [_build(stream.chunk.end, stream, {}) for stream in lanes.values()]

    def expand_event(self, event: BaseEvent) -> list[BaseEvent]:
        """Of an event that is sent as it is."""
        return [*self._streams_closed_by(event), event] if self._streams else [event]

    def expand_delta(self, event: BaseEvent) -> list[BaseEvent]:
        """Of a delta, which may be too long."""
        delta = event.__dict__.get("delta")  # whatever it is: what has none is refused when it is encoded
        events = split_delta(event) if isinstance(delta, str) and len(delta) > MAX_DELTA else [event]
        return [*self._streams_closed_by(event), *events] if self._streams else events

    # --- lanes ---

    def _streams_closed_by(self, event: BaseEvent) -> list[BaseEvent]:
        if isinstance(event, CLOSES_ALL):
            return self.flush()
        if isinstance(event, CLOSES_NONE):
            return []
        return self._close(getattr(event, "subagent_run_id", None))

    def _close(self, owner: str | None) -> list[BaseEvent]:
        stream = self._streams.get(owner)
        if stream is None:
            return []
        self._streams = {other: open_one for other, open_one in self._streams.items() if other != owner}
        return [_build(stream.chunk.end, stream, {})]

    def _stream_key(self, chunk: ChunkSpec, key: str | None, tag: str | None) -> str | None:
        """Which lane a chunk belongs to."""
        if key is not None:
            holder = next((s for s in self._streams.values() if s.chunk is chunk and s.key == key), None)
            if holder is None:
                return tag
            if tag not in (None, holder.owner):
                raise IllegalEvent(f"a chunk of {chunk.noun} {key!r} is tagged {tag!r}, its stream {holder.owner!r}")
            return holder.owner
        if tag is not None:
            return tag
        owners = [owner for owner, stream in self._streams.items() if stream.chunk is chunk]
        if None in owners or not owners:
            return None
        if len(owners) > 1:
            raise IllegalEvent(f"a chunk without an id could continue {len(owners)} open {chunk.noun} streams")
        return owners[0]

    # --- chunks ---

    def expand_chunk(self, event: ChunkEvent, chunk: ChunkSpec) -> list[BaseEvent]:
        """Of a chunk."""
        key: str | None = getattr(event, chunk.id_field)
        lane = self._stream_key(chunk, key, event.subagent_run_id)
        stream = self._streams.get(lane)
        opening: list[BaseEvent] = []
        if stream is not None and stream.chunk is chunk and key in (None, stream.key):
            _require_agreement(stream, event)
        else:
            opening = self._close(lane)
            stream = self._open(lane, chunk, event)
            fields = {**stream.fields, "timestamp": event.timestamp, "metadata": event.metadata}
            opening.append(_build(chunk.start, stream, fields))
        return self._with_content(opening, stream, event)

    def _open(self, lane: str | None, chunk: ChunkSpec, event: ChunkEvent) -> ChunkStream:
        for name in (chunk.id_field, *chunk.required):
            if getattr(event, name) is None:
                raise IllegalEvent(f"the first {type(event).__name__} of a stream has no {name}")
        fields: dict[str, str | None] = {name: getattr(event, name) for name in chunk.opener_fields}
        if "role" in fields:
            fields["role"] = fields["role"] or "assistant"
        stream = ChunkStream(chunk, getattr(event, chunk.id_field), event.subagent_run_id, fields)
        self._streams = {**self._streams, lane: stream}
        return stream

    def _with_content(self, opening: list[BaseEvent], stream: ChunkStream, event: ChunkEvent) -> list[BaseEvent]:
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
        return [*opening, *split_delta(_build(stream.chunk.content, stream, fields))]

    # --- strings ---

    def expand_text(self, text: str) -> list[BaseEvent]:
        """Of a plain string."""
        if not text:
            return []
        stream = self._streams.get(None)
        opening: list[BaseEvent] = []
        if stream is None or stream.chunk is not TEXT or stream.fields["role"] != "assistant":
            opening = self._close(None)
            stream = ChunkStream(TEXT, self._new_id(), None, {"role": "assistant", "name": None})
            self._streams = {**self._streams, None: stream}
            opening.append(_build(TEXT.start, stream, stream.fields))
        return [*opening, *split_delta(TextMessageContentEvent(message_id=stream.key, delta=text))]

    def expand_message_text(self, said: MessageText) -> list[BaseEvent]:
        """Of text by its message's id. Raises ``IllegalEvent`` for what are no texts."""
        try:
            return self.expand_delta(TextMessageContentEvent(message_id=said.message_id, delta=said.delta))
        except ValidationError as error:
            raise IllegalEvent(f"{error.errors()[0]['loc'][0]} of text is not a string") from None


Expansion = Callable[..., list[BaseEvent]]
"""A method of ``Expander`` that takes an item."""


def expansion_of(kind: type) -> Expansion:
    """How items of one class expand. Raises ``IllegalEvent`` for what is neither text nor an event."""
    if issubclass(kind, str):
        return Expander.expand_text
    if issubclass(kind, MessageText):
        return Expander.expand_message_text
    if not issubclass(kind, BaseEvent):
        raise IllegalEvent(f"{kind.__name__} is neither an AG-UI event nor a string")
    for base, chunk in CHUNKS.items():
        if issubclass(kind, base):
            return partial(Expander.expand_chunk, chunk=chunk)
    return Expander.expand_delta if issubclass(kind, DELTAS) else Expander.expand_event


EXPANSIONS = TypeCache(expansion_of)


def _require_agreement(stream: ChunkStream, event: ChunkEvent) -> None:
    for name, established in stream.fields.items():
        if getattr(event, name) not in (None, established):
            raise IllegalEvent(f"a chunk of {stream.chunk.noun} {stream.key!r} changes its {name}")


def _is_among(events: Sequence[BaseEvent], kind: type[BaseEvent], stream: ChunkStream) -> bool:
    """Whether the stream's start, or its end, is one of these."""
    return any(isinstance(event, kind) and getattr(event, stream.chunk.id_field) == stream.key for event in events)


def _build(kind: type[BaseEvent], stream: ChunkStream, fields: Mapping[str, object]) -> BaseEvent:
    return kind.model_validate({**fields, stream.chunk.id_field: stream.key, "subagent_run_id": stream.owner})
