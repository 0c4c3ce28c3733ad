"""Fast path for consecutive deltas.

Rule: model output is a stream of events that differ only in ``delta``. Once one delta has been validated in full, the
next one is encoded without validating it again if nothing else was emitted in between, it targets the same message or
tool call, and every other field is equal. This is safe because a delta opens and closes nothing, so if one delta is
legal, the next one is legal too. Everything else takes the normal path.
"""

from collections.abc import Mapping

from ag_ui.core import BaseEvent, EventType, ReasoningMessageContentEvent, TextMessageContentEvent, ToolCallArgsEvent
from orjson import dumps

from agui_container.protocol.conversation.transcript import Transcript
from agui_container.protocol.expander import MAX_DELTA, MessageText

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
    """Pattern for the next delta of a run, made from the last one.

    Args:
        item: item that the agent yielded: a string, a ``MessageText`` or the delta event itself.
        event: the last delta event that the item expanded to.
        head: JSON of the event up to the value of ``delta``.
        transcript: has the last delta, and gets the text of the next one.
    """

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
        """Return the template after an accepted item, or None if the next item must be validated in full.

        Args:
            item: item that the agent yielded.
            event: last event that the item expanded to, of any class.
            data: JSON of that event.
            transcript: the transcript after that event.
        """
        if not transcript.knows_last_delta or type(event) not in DELTA_CLASSES or event.__pydantic_extra__:
            return None
        is_text = type(item) is str or type(item) is MessageText
        if not is_text and (item is not event or any(event.__dict__[name] is not None for name in PER_EVENT_FIELDS)):
            return None
        tail = dumps(event.__dict__["delta"]) + CLOSING
        return cls(item, event, data[: -len(tail)], transcript) if data.endswith(tail) else None

    def encode_next(self, item: BaseEvent | MessageText | str) -> bytes | None:
        """Encode the next item if it equals the template in all fields but ``delta``, and append its text.

        Returns:
            The JSON of the delta event, or None if the item must take the normal path. Nothing is changed then.
        """
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
