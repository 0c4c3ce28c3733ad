"""Chunks, the short form of streams, as the events that they stand for.

A server may send TEXT_MESSAGE_CHUNK, TOOL_CALL_CHUNK and REASONING_MESSAGE_CHUNK in place of START, CONTENT and END. So
that nobody has to handle two forms, chunks are expanded here, by the rules of the official client: a lane, which is the
agent or one subagent, has one open stream of chunks, and any other content of that lane ends it.

Source: docs/spec/1.1/events in ag-ui-protocol/ag-ui.
"""

from dataclasses import dataclass
from uuid import uuid4

from ag_ui.core import (
    BaseEvent,
    EventType,
    ReasoningMessageChunkEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)

ChunkEvent = TextMessageChunkEvent | ToolCallChunkEvent | ReasoningMessageChunkEvent

CLOSES_ALL = frozenset(
    {EventType.RUN_STARTED, EventType.RUN_FINISHED, EventType.RUN_ERROR, EventType.MESSAGES_SNAPSHOT}
)
CLOSES_NONE = frozenset(
    {
        EventType.RAW,
        EventType.ACTIVITY_SNAPSHOT,
        EventType.ACTIVITY_DELTA,
        EventType.REASONING_ENCRYPTED_VALUE,
        EventType.SUBAGENT_STARTED,
    }
)


@dataclass(frozen=True, slots=True)
class OpenStream:
    """A stream of chunks that has begun."""

    kind: type[ChunkEvent]
    id: str


class ChunkExpander:
    """Expands the chunks of one run. All other events pass unchanged."""

    def __init__(self) -> None:
        self._open: dict[str | None, OpenStream] = {}

    def expand(self, event: BaseEvent) -> list[BaseEvent]:
        """Return the events that ``event`` stands for."""
        if isinstance(event, ChunkEvent):
            return self._chunk(event)
        if event.type in CLOSES_NONE:
            return [event]
        if event.type in CLOSES_ALL:
            return [*(end for lane in list(self._open) for end in self._close(lane)), event]
        return [*self._close(getattr(event, "subagent_run_id", None)), event]

    def _chunk(self, chunk: ChunkEvent) -> list[BaseEvent]:
        lane, named = chunk.subagent_run_id, _id_of(chunk)
        stream = self._open.get(lane)
        events: list[BaseEvent] = []
        if stream is None or stream.kind is not type(chunk) or named not in (None, stream.id):
            events = self._close(lane)
            stream = self._open[lane] = OpenStream(type(chunk), named or str(uuid4()))
            events.append(_start(chunk, stream.id))
        if chunk.delta:
            events.append(_content(chunk, stream.id))
        return events

    def _close(self, lane: str | None) -> list[BaseEvent]:
        stream = self._open.pop(lane, None)
        if stream is None:
            return []
        if stream.kind is ToolCallChunkEvent:
            return [ToolCallEndEvent(tool_call_id=stream.id, subagent_run_id=lane)]
        if stream.kind is TextMessageChunkEvent:
            return [TextMessageEndEvent(message_id=stream.id, subagent_run_id=lane)]
        return [ReasoningMessageEndEvent(message_id=stream.id, subagent_run_id=lane)]


def _id_of(chunk: ChunkEvent) -> str | None:
    return chunk.tool_call_id if isinstance(chunk, ToolCallChunkEvent) else chunk.message_id


def _start(chunk: ChunkEvent, stream_id: str) -> BaseEvent:
    lane, time = chunk.subagent_run_id, chunk.timestamp
    if isinstance(chunk, ToolCallChunkEvent):
        name, parent = chunk.tool_call_name or "", chunk.parent_message_id
        return ToolCallStartEvent(
            tool_call_id=stream_id,
            tool_call_name=name,
            parent_message_id=parent,
            subagent_run_id=lane,
            timestamp=time,
        )
    if isinstance(chunk, TextMessageChunkEvent):
        role, name_ = chunk.role, chunk.name
        return TextMessageStartEvent(message_id=stream_id, role=role, name=name_, subagent_run_id=lane, timestamp=time)
    return ReasoningMessageStartEvent(message_id=stream_id, subagent_run_id=lane, timestamp=time)


def _content(chunk: ChunkEvent, stream_id: str) -> BaseEvent:
    lane, time, delta = chunk.subagent_run_id, chunk.timestamp, chunk.delta or ""
    if isinstance(chunk, ToolCallChunkEvent):
        return ToolCallArgsEvent(tool_call_id=stream_id, delta=delta, subagent_run_id=lane, timestamp=time)
    if isinstance(chunk, TextMessageChunkEvent):
        return TextMessageContentEvent(message_id=stream_id, delta=delta, subagent_run_id=lane, timestamp=time)
    return ReasoningMessageContentEvent(message_id=stream_id, delta=delta, subagent_run_id=lane, timestamp=time)
