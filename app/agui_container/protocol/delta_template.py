"""Fast path for consecutive deltas.

Rule: model output is a stream of events that differ only in ``delta``. Once one delta has been validated in full, the
next one is encoded without validating it again if nothing else was emitted in between, it targets the same message or
tool call, and every other field is equal. A delta changes nothing in the order of a run: it continues what is open and
leaves it open, so what was found legal for one is legal for the next. Everything else takes the normal path.
"""

from collections.abc import Mapping
from io import StringIO

from ag_ui.core import BaseEvent, EventType, ReasoningMessageContentEvent, TextMessageContentEvent, ToolCallArgsEvent
from orjson import dumps

from agui_container.protocol.expander import MAX_DELTA
from agui_container.protocol.message_text import MessageText

DELTA_CLASSES: Mapping[type[BaseEvent], EventType] = {
    TextMessageContentEvent: EventType.TEXT_MESSAGE_CONTENT,
    ToolCallArgsEvent: EventType.TOOL_CALL_ARGS,
    ReasoningMessageContentEvent: EventType.REASONING_MESSAGE_CONTENT,
}
"""The classes themselves: a subclass may have more fields."""

PER_EVENT_FIELDS = ("timestamp", "raw_event", "metadata")
"""Fields that describe one event; the next delta would not repeat them."""

CLOSING = b"}"


class DeltaTemplate:
    """The last delta of a run, as the pattern for the next one.

    Args:
        item: what the agent yielded: a string, text of a message, or the delta itself.
        event: the delta that the item became, or its last one.
        head: the delta's JSON up to its text.
        text: collects the text of the message or the arguments of the call.
    """

    __slots__ = ("_fields", "_head", "_item_type", "_message_id", "_text", "event_type")

    def __init__(self, item: BaseEvent | MessageText | str, event: BaseEvent, head: bytes, text: StringIO) -> None:
        self.event_type = DELTA_CLASSES[type(event)]
        self._item_type = type(item)
        self._head = head
        self._message_id = item.message_id if isinstance(item, MessageText) else None
        self._fields = dict(event.__dict__)
        self._text = text

    @classmethod
    def of(
        cls, item: BaseEvent | MessageText | str, event: BaseEvent, data: bytes, text: StringIO | None
    ) -> "DeltaTemplate | None":
        """The template that an accepted item leaves, or None if the next one has to be validated in full.

        Args:
            item: what the agent yielded.
            event: its last event, which may be no delta.
            data: that event's JSON.
            text: where the transcript collects the text; None if the message is not kept.
        """
        if text is None or type(event) not in DELTA_CLASSES or event.__pydantic_extra__:
            return None
        is_text = type(item) is str or type(item) is MessageText
        if not is_text and (item is not event or any(event.__dict__[name] is not None for name in PER_EVENT_FIELDS)):
            return None
        tail = dumps(event.__dict__["delta"]) + CLOSING
        return cls(item, event, data[: -len(tail)], text) if data.endswith(tail) else None

    def encode_next(self, item: BaseEvent | MessageText | str) -> bytes | None:
        """The item's JSON if it equals the template in all but its text, which is collected; None for all others."""
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
            data = self._head + dumps(delta) + CLOSING
        except TypeError:  # half of a surrogate pair, which JSON cannot hold
            return None
        self._text.write(delta)
        return data
