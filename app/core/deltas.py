"""A delta behind a delta: one that repeats the one before in all but its text is told by that text.

Rule: a delta changes nothing of the order: it goes on with what is open, and leaves it open. So what was found for one
holds for the next, as long as nothing else comes in between: it may come, it belongs to the same message or call, and
its JSON is the same but for the text. An item that is different in any other way is looked at in full. This is what a
model says token by token.
"""

from collections.abc import Mapping
from functools import cache
from typing import Protocol

from ag_ui.core import BaseEvent, ReasoningMessageContentEvent, TextMessageContentEvent, ToolCallArgsEvent
from orjson import dumps

from app.core.pieces import MAX_DELTA
from app.core.said import Said
from app.core.stretch import END


class GoesOn(Protocol):
    """What goes on with the same."""

    def takes(self, item: BaseEvent | Said | str) -> bool:
        """Put the item's text to the others, if it goes on with them."""


DELTAS: Mapping[type[BaseEvent], str] = {
    TextMessageContentEvent: "message_id",
    ToolCallArgsEvent: "tool_call_id",
    ReasoningMessageContentEvent: "message_id",
}
"""By class, the field that says what they belong to. The classes themselves: one that an agent derives may say more."""

ASIDES = ("timestamp", "raw_event", "metadata")
"""What an event says of itself; a model's next token would not say the same."""


def after(
    item: BaseEvent | Said | str, event: BaseEvent, data: bytes, rests: list[bytes]
) -> tuple[bytes, GoesOn] | None:
    """What goes on with an item and what its JSON begins with, or None where the next has to be looked at in full.

    Args:
        item: what was accepted.
        event: the delta that it was, or ended with.
        data: its JSON.
        rests: takes the JSON of what goes on, each from its text on.
    """
    head = data.removesuffix(dumps(event.__dict__["delta"]) + END)
    goes_on = None if len(head) == len(data) else _goes_on(item, event, rests)
    return None if goes_on is None else (head, goes_on)


def _goes_on(item: BaseEvent | Said | str, event: BaseEvent, rests: list[bytes]) -> GoesOn | None:
    if type(item) is str:
        return TextAfter(rests)
    if type(item) is Said:
        return SaidAfter(item.message_id, rests)
    if event is not item or event.__pydantic_extra__ or any(event.__dict__[name] is not None for name in ASIDES):
        return None
    name = DELTAS.get(type(event))
    return None if name is None else EventAfter(event, name, rests)


# Objects of slots, no closures: each cell of one is an object more that is not at hand when the next token comes.


class TextAfter:
    """Text behind text."""

    __slots__ = ("_rests",)

    def __init__(self, rests: list[bytes]) -> None:
        self._rests = rests

    def takes(self, item: BaseEvent | Said | str) -> bool:
        """Put the item's text to the others, if it goes on with them."""
        if type(item) is not str or not 0 < len(item) <= MAX_DELTA:
            return False
        try:
            self._rests.append(dumps(item) + END)
        except TypeError:  # half of a surrogate pair
            return False
        return True


class SaidAfter:
    """More text of the same message."""

    __slots__ = ("_key", "_rests")

    def __init__(self, key: str, rests: list[bytes]) -> None:
        self._key = key
        self._rests = rests

    def takes(self, item: BaseEvent | Said | str) -> bool:
        """Put the item's text to the others, if it goes on with them."""
        if type(item) is not Said or item.message_id != self._key:
            return False
        text = item.delta
        if type(text) is not str or len(text) > MAX_DELTA:
            return False
        try:
            self._rests.append(dumps(text) + END)
        except TypeError:  # half of a surrogate pair
            return False
        return True


class EventAfter:
    """A delta of the same class and the same fields.

    Args:
        event: the one before.
        name: of the field that says what it belongs to.
    """

    __slots__ = ("_key", "_kind", "_name", "_rests", "_same")

    def __init__(self, event: BaseEvent, name: str, rests: list[bytes]) -> None:
        self._kind = type(event)
        self._name = name
        self._key = event.__dict__[name]
        self._rests = rests
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
            if type(text) is not str or len(text) > MAX_DELTA or fields != same:
                return False
            self._rests.append(dumps(text) + END)
        except (KeyError, TypeError):  # a field was taken away; half of a surrogate pair
            return False
        return True


@cache
def _plain(kind: type[BaseEvent]) -> dict[str, object]:
    """The fields of a delta that says nothing but its text, to be compared with; who compares puts in text and key.

    One for all streams: of each stream's own nothing would be at hand when its next token comes.
    """
    return {name: field.default for name, field in kind.model_fields.items() if not field.is_required()}
