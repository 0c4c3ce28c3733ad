"""A delta behind a delta: one that repeats the one before in all but its text is told by that text.

Rule: a delta changes nothing of the order: it goes on with what is open, and leaves it open. So what was found for one
holds for the next, as long as nothing else comes in between: it may come, it belongs to the same message or call, and
its JSON is the same but for the text. An item that is different in any other way is looked at in full. This is what a
model says token by token.
"""

from collections.abc import Callable, Mapping
from functools import cache

from ag_ui.core import BaseEvent, ReasoningMessageContentEvent, TextMessageContentEvent, ToolCallArgsEvent
from orjson import dumps

from app.core.pieces import MAX_DELTA
from app.core.said import Said
from app.core.stretch import END

GoesOn = Callable[[BaseEvent | Said | str], bool]
"""Takes an item that goes on with the same, and no other: puts its text to the others."""

Put = Callable[[bytes], None]
"""Takes the JSON of one more, from its text on."""

DELTAS: Mapping[type[BaseEvent], str] = {
    TextMessageContentEvent: "message_id",
    ToolCallArgsEvent: "tool_call_id",
    ReasoningMessageContentEvent: "message_id",
}
"""By class, the field that says what they belong to. The classes themselves: one that an agent derives may say more."""

ASIDES = ("timestamp", "raw_event", "metadata")
"""What an event says of itself; a model's next token would not say the same."""


def after(item: BaseEvent | Said | str, event: BaseEvent, data: bytes, put: Put) -> tuple[bytes, GoesOn] | None:
    """What goes on with an item and what its JSON begins with, or None where the next has to be looked at in full.

    Args:
        item: what was accepted.
        event: the delta that it was, or ended with.
        data: its JSON.
        put: where the rest of the JSON goes.
    """
    head = data.removesuffix(dumps(event.__dict__["delta"]) + END)
    goes_on = None if len(head) == len(data) else _goes_on(item, event, put)
    return None if goes_on is None else (head, goes_on)


def _goes_on(item: BaseEvent | Said | str, event: BaseEvent, put: Put) -> GoesOn | None:
    if type(item) is str:
        return _text_after(put)
    if type(item) is Said:
        return _said_after(item.message_id, put)
    if event is not item or event.__pydantic_extra__ or any(event.__dict__[name] is not None for name in ASIDES):
        return None
    return _event_after(event, put)


# What they need are defaults of their parameters: in a closure each would be an object more of a stream that waits.


def _text_after(put: Put) -> GoesOn:
    def goes_on(item: BaseEvent | Said | str, put: Put = put) -> bool:
        if type(item) is not str or not 0 < len(item) <= MAX_DELTA:
            return False
        try:
            put(dumps(item) + END)
        except TypeError:  # half of a surrogate pair
            return False
        return True

    return goes_on


def _said_after(key: str, put: Put) -> GoesOn:
    def goes_on(item: BaseEvent | Said | str, key: str = key, put: Put = put) -> bool:
        if type(item) is not Said or item.message_id != key:
            return False
        text = item.delta
        if type(text) is not str or len(text) > MAX_DELTA:
            return False
        try:
            put(dumps(text) + END)
        except TypeError:  # half of a surrogate pair
            return False
        return True

    return goes_on


def _event_after(event: BaseEvent, put: Put) -> GoesOn | None:
    kind = type(event)
    name = DELTAS.get(kind)
    if name is None:
        return None
    fields = event.__dict__
    key, same = fields[name], _plain(kind)
    same[name], same["delta"] = key, fields["delta"]
    if fields != same:  # a subagent's
        same = dict(fields)

    def goes_on(  # noqa: PLR0913, PLR0917 - see above
        item: BaseEvent | Said | str,
        kind: type[BaseEvent] = kind,
        name: str = name,
        key: str = key,
        same: dict[str, object] = same,
        put: Put = put,
    ) -> bool:
        if type(item) is not kind or item.__pydantic_extra__:
            return False
        try:
            fields = item.__dict__
            same[name] = key
            same["delta"] = text = fields["delta"]
            if type(text) is not str or len(text) > MAX_DELTA or fields != same:
                return False
            put(dumps(text) + END)
        except (KeyError, TypeError):  # a field was taken away; half of a surrogate pair
            return False
        return True

    return goes_on


@cache
def _plain(kind: type[BaseEvent]) -> dict[str, object]:
    """The fields of a delta that says nothing but its text, to be compared with; who compares puts in text and key.

    One for all streams: of each stream's own nothing would be at hand when its next token comes.
    """
    return {name: field.default for name, field in kind.model_fields.items() if not field.is_required()}
