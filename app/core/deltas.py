"""A delta behind a delta: one that repeats the one before in all but its text is told by that text.

Rule: a delta changes nothing of the order: it goes on with what is open, and leaves it open. So what was found for one
holds for the next, as long as nothing else comes in between: it may come, it belongs to the same message or call, and
its JSON is the same but for the text. An item that is different in any other way is looked at in full. This is what a
model says token by token.
"""

from collections.abc import Mapping
from functools import cache

from ag_ui.core import BaseEvent, EventType, ReasoningMessageContentEvent, TextMessageContentEvent, ToolCallArgsEvent
from orjson import dumps

from app.core.pieces import MAX_DELTA
from app.core.said import Said
from app.core.stretch import END, Stretch

DELTAS: Mapping[type[BaseEvent], str] = {
    TextMessageContentEvent: "message_id",
    ToolCallArgsEvent: "tool_call_id",
    ReasoningMessageContentEvent: "message_id",
}
"""By class, the field that says what they belong to. The classes themselves: one that an agent derives may say more."""

ASIDES = ("timestamp", "raw_event", "metadata")
"""What an event says of itself; a model's next token would not say the same."""


class Strings(Stretch):
    """Of strings."""

    __slots__ = ()

    def takes(self, item: BaseEvent | Said | str) -> bool:
        """Put the item's text to the others, if it goes on with them."""
        if type(item) is not str or not 0 < len(item) <= MAX_DELTA or not (item.isascii() or has_utf8(item)):
            return False
        self.fresh.append(item)
        return True


class Sayings(Stretch):
    """Of text by its message.

    Args:
        key: the message's id.
    """

    __slots__ = ("_key",)

    def __init__(self, start: int, head: bytes, event_type: EventType, key: str) -> None:
        super().__init__(start, head, event_type)
        self._key = key

    def takes(self, item: BaseEvent | Said | str) -> bool:
        """Put the item's text to the others, if it goes on with them."""
        if type(item) is not Said or item.message_id != self._key:
            return False
        text = item.delta
        if type(text) is not str or len(text) > MAX_DELTA or not (text.isascii() or has_utf8(text)):
            return False
        self.fresh.append(text)
        return True


class Deltas(Stretch):
    """Of events of the same class and the same fields.

    Args:
        event: the one before.
        name: of the field that says what it belongs to.
    """

    __slots__ = ("_key", "_kind", "_name", "_same")

    def __init__(self, start: int, head: bytes, event_type: EventType, event: BaseEvent, name: str) -> None:
        super().__init__(start, head, event_type)
        self._kind = type(event)
        self._name = name
        self._key = event.__dict__[name]
        self._same = _plain(self._kind)
        self._same[name], self._same["delta"] = self._key, event.__dict__["delta"]
        if event.__dict__ != self._same:  # a subagent's
            self._same = dict(event.__dict__)

    def takes(self, item: BaseEvent | Said | str) -> bool:
        """Put the item's text to the others, if it goes on with them."""
        if type(item) is not self._kind or item.__pydantic_extra__:
            return False
        same = self._same
        try:
            fields = item.__dict__
            same[self._name] = self._key
            same["delta"] = text = fields["delta"]
        except KeyError:  # a field was taken away
            return False
        if type(text) is not str or len(text) > MAX_DELTA or fields != same or not (text.isascii() or has_utf8(text)):
            return False
        self.fresh.append(text)
        return True


GoesOn = Strings | Sayings | Deltas
"""Takes what goes on with the same."""


def after(
    item: BaseEvent | Said | str, event: BaseEvent, data: bytes, start: int, event_type: EventType
) -> GoesOn | None:
    """What takes what goes on with an item, or None where the next has to be looked at in full.

    Args:
        item: what was accepted.
        event: the delta that it was, or ended with.
        data: its JSON.
        start: its number in the run.
        event_type: its own.
    """
    head = data.removesuffix(dumps(event.__dict__["delta"]) + END)
    if len(head) == len(data):
        return None
    if type(item) is str:
        return Strings(start, head, event_type)
    if type(item) is Said:
        return Sayings(start, head, event_type, item.message_id)
    name = DELTAS.get(type(event))
    if name is None or event is not item or event.__pydantic_extra__:
        return None
    if any(event.__dict__[name] is not None for name in ASIDES):
        return None
    return Deltas(start, head, event_type, event, name)


def has_utf8(text: str) -> bool:
    """Not so half of a surrogate pair. To be asked where a text is not ASCII."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@cache
def _plain(kind: type[BaseEvent]) -> dict[str, object]:
    """The fields of a delta that says nothing but its text, to be compared with; who compares puts in text and key.

    One for all streams: of each stream's own nothing would be at hand when its next token comes.
    """
    return {name: field.default for name, field in kind.model_fields.items() if not field.is_required()}
