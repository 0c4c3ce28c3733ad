"""What chunks open: how each class of chunk expands, and the streams that are open, one in a lane.

Rule: what is open is never changed but put anew, so that it can be taken back.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ag_ui.core import (
    BaseEvent,
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
from msgspec import Struct

ChunkEvent = TextMessageChunkEvent | ToolCallChunkEvent | ReasoningMessageChunkEvent


class Chunk(Struct, frozen=True, eq=False):
    """How one chunk class expands: the field of its id, the opener's other fields, and the three classes."""

    noun: str
    id_field: str
    opener_fields: tuple[str, ...]
    required: tuple[str, ...]
    start: type[BaseEvent]
    content: type[BaseEvent]
    end: type[BaseEvent]


TEXT = Chunk(
    noun="text message",
    id_field="message_id",
    opener_fields=("role", "name"),
    required=(),
    start=TextMessageStartEvent,
    content=TextMessageContentEvent,
    end=TextMessageEndEvent,
)
CHUNKS: dict[type[BaseEvent], Chunk] = {
    TextMessageChunkEvent: TEXT,
    ToolCallChunkEvent: Chunk(
        noun="tool call",
        id_field="tool_call_id",
        opener_fields=("tool_call_name", "parent_message_id"),
        required=("tool_call_name",),
        start=ToolCallStartEvent,
        content=ToolCallArgsEvent,
        end=ToolCallEndEvent,
    ),
    ReasoningMessageChunkEvent: Chunk(
        noun="reasoning message",
        id_field="message_id",
        opener_fields=(),
        required=(),
        start=ReasoningMessageStartEvent,
        content=ReasoningMessageContentEvent,
        end=ReasoningMessageEndEvent,
    ),
}


class Stream(Struct, frozen=True):
    """The open stream of a lane."""

    chunk: Chunk
    key: str
    owner: str | None
    fields: dict[str, str | None]


Lanes = Mapping[str | None, Stream]
"""By owner."""

NONE_OPEN: Lanes = MappingProxyType({})
