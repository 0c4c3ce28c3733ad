"""Expansion of an agent's items (chunks, strings, long deltas) into START, CONTENT and END events.

Rule: the output has no ``*_CHUNK`` event, and no delta is longer than ``MAX_DELTA`` characters. Every text or argument
event therefore fits into a WebSocket frame of AgentCore (docs/behind-agentcore.md). The open streams are those of
accepted events only: ``rollback`` undoes an expansion. ``_streams`` is replaced and never mutated, which makes this
possible.

There is at most one open chunk stream per owner, that is per ``subagentRunId``. Another stream or any explicit event of
the same owner ends it. RUN_* and MESSAGES_SNAPSHOT end all streams. A chunk without an id continues the only stream
that it can belong to. A plain string is a chunk of assistant text that needs no id.

Source: AG-UI spec 1.1, basic/patterns/streaming#the-chunked-form, and the chunk layer of ``@ag-ui/client`` 1.0.0.
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

from agui_core.type_cache import TypeCache


class IllegalEvent(Exception):
    """An event that AG-UI forbids, or forbids at this point of the run. The text is for the log, not for clients."""


class MessageText(Struct, frozen=True):
    """More text for a message that TEXT_MESSAGE_START has opened, without the cost of an event object.

    It is equivalent to a TEXT_MESSAGE_CONTENT event with these two fields.
    """

    message_id: str
    delta: str


ChunkEvent = TextMessageChunkEvent | ToolCallChunkEvent | ReasoningMessageChunkEvent


class ChunkSpec(Struct, frozen=True, eq=False):
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
    chunk: ChunkSpec
    key: str
    owner: str | None
    fields: dict[str, str | None]


OpenStreams = Mapping[str | None, ChunkStream]
"""Open streams by owner: a ``subagentRunId``, or None for the run's own agent."""

NO_STREAMS: OpenStreams = MappingProxyType({})


MAX_DELTA = 5_000
"""Maximum number of characters of a delta. One character takes at most 6 bytes of JSON, so a delta takes 30 KB."""


def split_delta(event: BaseEvent) -> list[BaseEvent]:
    """Only the first event keeps ``rawEvent`` and ``metadata``, because they describe the whole delta."""
    delta: str = event.__dict__["delta"]
    if len(delta) <= MAX_DELTA:
        return [event]
    first, *rest = (delta[start : start + MAX_DELTA] for start in range(0, len(delta), MAX_DELTA))
    cleared = {"raw_event": None, "metadata": None}
    return [
        event.model_copy(update={"delta": first}),
        *(event.model_copy(update={"delta": part, **cleared}) for part in rest),
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
    """Expander of one run's items, in order. ``new_id`` makes the message ids of plain strings."""

    __slots__ = ("_new_id", "_previous_streams", "_streams")

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._streams = NO_STREAMS
        self._previous_streams = NO_STREAMS
        """The open streams before the last ``expand``."""

    def expand(self, item: BaseEvent | MessageText | str) -> list[BaseEvent]:
        """Raise ``IllegalEvent`` for an item that is neither text nor a valid event. Open streams stay unchanged."""
        self._previous_streams = self._streams
        try:
            return EXPANSIONS[type(item)](self, item)
        except Exception as error:
            self._streams = self._previous_streams
            if isinstance(error, ValidationError):
                raise IllegalEvent(f"{type(item).__name__} is not a valid AG-UI event: {error}") from error
            raise

    def rollback(self, accepted: Sequence[BaseEvent]) -> None:
        """Undo the last ``expand`` but for its events that were accepted. Only they open and close streams."""
        still_open = {
            owner: stream
            for owner, stream in self._previous_streams.items()
            if not _has_event(accepted, stream.chunk.end, stream)
        }
        opened = {
            owner: stream for owner, stream in self._streams.items() if _has_event(accepted, stream.chunk.start, stream)
        }
        self._streams = still_open | opened

    def flush(self) -> list[BaseEvent]:
        streams, self._streams = self._streams, NO_STREAMS
        return [_build(stream.chunk.end, stream, {}) for stream in streams.values()]

    def expand_event(self, event: BaseEvent) -> list[BaseEvent]:
        return [*self._close_for(event), event] if self._streams else [event]

    def expand_delta(self, event: BaseEvent) -> list[BaseEvent]:
        delta = event.__dict__.get("delta")  # the encoder refuses an event without a valid delta
        events = split_delta(event) if isinstance(delta, str) and len(delta) > MAX_DELTA else [event]
        return [*self._close_for(event), *events] if self._streams else events

    # --- streams ---

    def _close_for(self, event: BaseEvent) -> list[BaseEvent]:
        if isinstance(event, CLOSES_ALL):
            return self.flush()
        if isinstance(event, CLOSES_NONE):
            return []
        return self._close(getattr(event, "subagent_run_id", None))

    def _close(self, owner: str | None) -> list[BaseEvent]:
        stream = self._streams.get(owner)
        if stream is None:
            return []
        self._streams = {key: each for key, each in self._streams.items() if key != owner}
        return [_build(stream.chunk.end, stream, {})]

    def _find_owner(self, chunk: ChunkSpec, key: str | None, tag: str | None) -> str | None:
        if key is not None:
            stream = next((s for s in self._streams.values() if s.chunk is chunk and s.key == key), None)
            if stream is None:
                return tag
            if tag not in (None, stream.owner):
                raise IllegalEvent(f"a chunk of {chunk.noun} {key!r} is tagged {tag!r}, its stream {stream.owner!r}")
            return stream.owner
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
        key: str | None = getattr(event, chunk.id_field)
        owner = self._find_owner(chunk, key, event.subagent_run_id)
        stream = self._streams.get(owner)
        opening: list[BaseEvent] = []
        if stream is not None and stream.chunk is chunk and key in (None, stream.key):
            _require_agreement(stream, event)
        else:
            opening = self._close(owner)
            stream = self._open(owner, chunk, event)
            fields = {**stream.fields, "timestamp": event.timestamp, "metadata": event.metadata}
            opening.append(_build(chunk.start, stream, fields))
        return self._with_content(opening, stream, event)

    def _open(self, owner: str | None, chunk: ChunkSpec, event: ChunkEvent) -> ChunkStream:
        for name in (chunk.id_field, *chunk.required):
            if getattr(event, name) is None:
                raise IllegalEvent(f"the first {type(event).__name__} of a stream has no {name}")
        fields: dict[str, str | None] = {name: getattr(event, name) for name in chunk.opener_fields}
        if "role" in fields:
            fields["role"] = fields["role"] or "assistant"
        stream = ChunkStream(chunk, getattr(event, chunk.id_field), event.subagent_run_id, fields)
        self._streams = {**self._streams, owner: stream}
        return stream

    def _with_content(self, opening: list[BaseEvent], stream: ChunkStream, event: ChunkEvent) -> list[BaseEvent]:
        extra = event.model_extra or {}
        has_side_fields = event.metadata is not None or bool(extra)
        if event.delta is None and event.raw_event is None and (opening or not has_side_fields):
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

    def expand_message_text(self, item: MessageText) -> list[BaseEvent]:
        try:
            return self.expand_delta(TextMessageContentEvent(message_id=item.message_id, delta=item.delta))
        except ValidationError as error:
            raise IllegalEvent(f"{error.errors()[0]['loc'][0]} of text is not a string") from None


Expansion = Callable[..., list[BaseEvent]]
"""Method of ``Expander`` that expands items of one class."""


def expansion_for(kind: type) -> Expansion:
    """Return the method that expands items of ``kind``. Raises ``IllegalEvent`` if it is neither text nor an event."""
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


EXPANSIONS = TypeCache(expansion_for)


def _require_agreement(stream: ChunkStream, event: ChunkEvent) -> None:
    for name, value in stream.fields.items():
        if getattr(event, name) not in (None, value):
            raise IllegalEvent(f"a chunk of {stream.chunk.noun} {stream.key!r} changes its {name}")


def _has_event(events: Sequence[BaseEvent], kind: type[BaseEvent], stream: ChunkStream) -> bool:
    return any(isinstance(event, kind) and getattr(event, stream.chunk.id_field) == stream.key for event in events)


def _build(kind: type[BaseEvent], stream: ChunkStream, fields: Mapping[str, object]) -> BaseEvent:
    return kind.model_validate({**fields, stream.chunk.id_field: stream.key, "subagent_run_id": stream.owner})
