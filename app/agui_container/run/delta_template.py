"""Fast path for consecutive deltas.

Rule: model output is a stream of events that differ only in ``delta``. Once one delta has been validated in full, the
next one is encoded without validating it again if nothing else was emitted in between, it targets the same message or
tool call, and every other field is equal. This is safe because a delta opens and closes nothing, so if one delta is
legal, the next one is legal too. Everything else takes the normal path.
"""

from collections.abc import Mapping

from ag_ui.core import BaseEvent, EventType, ReasoningMessageContentEvent, TextMessageContentEvent, ToolCallArgsEvent
from orjson import dumps

from agui_core.expander import MAX_DELTA, MessageText
from agui_core.transcript import Transcript

DELTA_CLASSES: Mapping[type[BaseEvent], EventType] = {
    TextMessageContentEvent: EventType.TEXT_MESSAGE_CONTENT,
    ToolCallArgsEvent: EventType.TOOL_CALL_ARGS,
    ReasoningMessageContentEvent: EventType.REASONING_MESSAGE_CONTENT,
}
"""Delta classes and their types. Subclasses are excluded, because they may have more fields."""

PER_EVENT_FIELDS = ("timestamp", "raw_event", "metadata")
"""Fields that describe a single event, so the next delta does not repeat them."""

CLOSING = b"}"


class DeltaTemplate:
    """Pattern for the next delta of a run. ``head`` is the JSON of the last one up to its ``delta``."""

    __slots__ = ("_append", "_fields", "_head", "_item_type", "_message_id", "event_type")

    def __init__(
        self, item: BaseEvent | MessageText | str, event: BaseEvent, head: bytes, transcript: Transcript
    ) -> None:
        self.event_type = DELTA_CLASSES[type(event)]
        self._item_type = type(item)
        self._head = head
        self._message_id = item.message_id if isinstance(item, MessageText) else None
        self._fields = dict(event.__dict__)
        self._append = transcript.append

    @classmethod
    def of(
        cls, item: BaseEvent | MessageText | str, event: BaseEvent, data: bytes, transcript: Transcript
    ) -> "DeltaTemplate | None":
        """Return the template after an accepted item, or None if the next item must be validated in full."""
        if not transcript.knows_last_delta or type(event) not in DELTA_CLASSES or event.__pydantic_extra__:
            return None
        is_text = type(item) is str or type(item) is MessageText
        if not is_text and (item is not event or any(event.__dict__[name] is not None for name in PER_EVENT_FIELDS)):
            return None
        tail = dumps(event.__dict__["delta"]) + CLOSING
        return cls(item, event, data[: -len(tail)], transcript) if data.endswith(tail) else None

    def encode_next(self, item: BaseEvent | MessageText | str) -> bytes | None:
        """Append the item if only its ``delta`` differs. None changes nothing: the item takes the normal path."""
        if type(item) is not self._item_type:
            return None
        if type(item) is str:
            delta = item or None  # an empty string is no event
        elif type(item) is MessageText:
            delta = item.delta if item.message_id == self._message_id else None
        else:
            fields = item.__dict__
            self._fields["delta"] = delta = fields.get("delta")
            if fields != self._fields or item.__pydantic_extra__:  # type: ignore[union-attr] # an event by its type
                return None
        if type(delta) is not str or len(delta) > MAX_DELTA:
            return None
        try:
            self._append(delta)
        except UnicodeEncodeError:  # half of a surrogate pair
            return None
        return self._head + dumps(delta) + CLOSING
