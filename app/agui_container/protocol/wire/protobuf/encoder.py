"""Any JSON value into a ``JsonValue``.

Rule: the members of an object keep the order that a JavaScript client would give them, which is what makes two encoders
agree byte for byte: array indexes first, by size, then the others as they came (ECMA-262, OrdinaryOwnPropertyKeys).
What is called ``PROTOTYPE`` is no member there but the object's prototype, so it is left out.

An event's JSON into its message, along the schema's own field names.

Rule: the schema decides. A field that it does not have stays behind, as every binary encoder leaves it (AG-UI spec 1.1,
basic/transports/http-protobuf: the wire is narrower), and so does a value that is not of the field's type. The places
where JSON and messages differ by more than names are the functions at the end.

An event's JSON to its frame on the binary wire.

Rule: the same bytes as ``@ag-ui/proto`` 1.0.0 gives for the same JSON, for every event type. Source: AG-UI spec 1.1,
basic/transports/http-protobuf: four bytes of length, big-endian, and the message; frames abut.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pydantic_core import from_json

from agui_container.protocol.wire.protobuf.schema import BASE_EVENT, EVENT, Event

MAX_INDEX = 2**32 - 2
"""The largest array index. Greater numbers are names like any other."""

PROTOTYPE = "__proto__"


def fill_value(message: Any, value: Any) -> None:  # noqa: ANN401 - a JsonValue, and any JSON
    """Set a ``JsonValue``, member by member: one call for a large value would hold up every other thread."""
    kind = type(value)
    if kind is str:
        message.string_value = value
    elif kind is dict:
        fill_object(message.object_value, value)
    elif kind is list:
        message.array_value.SetInParent()
        add = message.array_value.values.add
        for each in value:
            fill_value(add(), each)
    elif kind is bool:
        message.bool_value = value
    elif value is None:
        message.null_value = 0
    else:
        message.number_value = _double(value)


def fill_object(message: Any, value: dict[str, Any]) -> None:  # noqa: ANN401 - a JsonObject
    """Set a ``JsonObject``."""
    message.SetInParent()
    add = message.members.add
    for key in _in_order(value):
        if key != PROTOTYPE:
            member = add()
            member.key = key
            fill_value(member.value, value[key])


def _double(number: float) -> float:
    """A number as JavaScript has it."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _in_order(keys: Iterable[str]) -> Iterable[str]:
    indexes = {key for key in keys if key[:1].isdigit() and _is_index(key)}
    if not indexes:
        return keys
    return [*sorted(indexes, key=int), *(key for key in keys if key not in indexes)]


def _is_index(key: str) -> bool:
    if not (key.isascii() and key.isdigit()) or len(key) > len(str(MAX_INDEX)):
        return False
    return (key == "0" or key[0] != "0") and int(key) <= MAX_INDEX


JsonObject = Mapping[str, Any]
Fill = Callable[[Any, Any], None]
"""Sets a message, or one field of it, from a JSON value that it accepts."""
Accepts = Callable[[Any], bool]


def fill_event(message: Any, event: JsonObject) -> None:  # noqa: ANN401 - an Event
    """Set an ``Event``. Raises ``KeyError`` for a type that the schema does not have."""
    arm = event["type"].lower()
    inner = getattr(message, arm)
    ARMS[arm](inner, event)
    BASE(inner.base_event, event)


# --- along the schema ---


def _message(descriptor: Descriptor) -> Fill:
    """For a message whose fields are named as in JSON."""
    reshape = RESHAPED.get(descriptor.name)
    fields = {field.json_name: _field(field) for field in descriptor.fields if field.name != "base_event"}

    def fill(message: Any, value: JsonObject) -> None:  # noqa: ANN401 - any message
        message.SetInParent()
        for name, member in (reshape(value) if reshape else value).items():
            if name in fields:
                fields[name](message, member)

    return fill


def _union(descriptor: Descriptor) -> Fill:
    """For a message whose one field is named by JSON's ``type``."""
    arms = _arms(descriptor)

    def fill(message: Any, value: JsonObject) -> None:  # noqa: ANN401 - any message
        arms[value["type"]](getattr(message, value["type"]), value)

    return fill


def _arms(descriptor: Descriptor) -> dict[str, Fill]:
    return {field.name: _message(field.message_type) for field in descriptor.fields if field.message_type}


def _field(field: FieldDescriptor) -> Fill:
    """Sets one field of a message."""
    name = field.name
    if field.message_type is None:
        return _repeated_scalar(name, SCALARS[field.type]) if field.is_repeated else _scalar(field)
    accepts, fill = _submessage(field, field.message_type)

    def one(message: Any, value: Any) -> None:  # noqa: ANN401 - any message, any JSON
        if accepts(value):
            fill(getattr(message, name), value)

    def each(message: Any, value: Any) -> None:  # noqa: ANN401 - any message, any JSON
        for item in value if isinstance(value, list) else ():
            if accepts(item):
                fill(getattr(message, name).add(), item)

    return each if field.is_repeated else one


def _scalar(field: FieldDescriptor) -> Fill:
    name, kind = field.name, SCALARS[field.type]
    numbers = {value.name: value.number for value in field.enum_type.values} if field.enum_type else None

    def fill(message: Any, value: Any) -> None:  # noqa: ANN401 - any message, any JSON
        if type(value) is kind:
            setattr(message, name, numbers[str(value).upper()] if numbers else value)

    return fill


def _repeated_scalar(name: str, kind: type) -> Fill:
    def fill(message: Any, value: Any) -> None:  # noqa: ANN401 - any message, any JSON
        getattr(message, name).extend(item for item in value or () if type(item) is kind)

    return fill


def _submessage(field: FieldDescriptor, descriptor: Descriptor) -> tuple[Accepts, Fill]:
    """Which JSON a field's message may be set from, and how."""
    if descriptor.name == "JsonValue":
        optional = field.containing_oneof is not None
        return lambda value: value is not None or not optional, fill_value
    if descriptor.name == "JsonObject":
        return _is_object, fill_object
    if descriptor.name in UNIONS:
        names = frozenset(field.name for field in descriptor.fields)
        return lambda value: _is_object(value) and value.get("type") in names, _union(descriptor)
    return _is_object, _message(descriptor)


def _is_object(value: Any) -> bool:  # noqa: ANN401 - any JSON
    return isinstance(value, dict)


SCALARS: Mapping[int, type] = {
    FieldDescriptor.TYPE_STRING: str,
    FieldDescriptor.TYPE_BOOL: bool,
    FieldDescriptor.TYPE_INT64: int,
    FieldDescriptor.TYPE_ENUM: str,
}

UNIONS = frozenset({"InputContent", "InputContentSource"})


# --- where JSON differs ---


def _content(value: JsonObject) -> JsonObject:
    """One ``content`` in JSON; a field for each form it may have in a message."""
    content = value.get("content")
    form = "content"
    if isinstance(content, list):
        form = "contentParts"
    elif value.get("role") == "activity":
        form, content = "activityContent", content or {}
    return {**value, "content": None, "contentParts": None, form: content}


def _outcome(value: JsonObject) -> JsonObject:
    """JSON's outcome is an object, and the message has its type and what it holds side by side."""
    outcome = value.get("outcome")
    flat = {**value, "outcome": None, **dict.fromkeys(HELD.values())}
    if isinstance(outcome, dict):
        kind = outcome.get("type")
        flat["outcome"] = kind
        if kind in HELD:
            flat[HELD[kind]] = outcome.get(HELD[kind])
    return flat


HELD = {"success": "pendingToolCallIds", "interrupt": "interrupts", "suspended": "interruptIds"}
"""What an outcome of this type holds."""

RESHAPED: Mapping[str, Callable[[JsonObject], JsonObject]] = {
    "Message": _content,
    "ToolCallResultEvent": _content,
    "RunFinishedEvent": _outcome,
    "SubagentFinishedEvent": _outcome,
}

ARMS = _arms(EVENT)
BASE = _message(BASE_EVENT)


def encode_frame(data: bytes) -> bytes:
    """The frame of one event.

    Args:
        data: the event as ``core.encoder`` made it.
    """
    event = Event()
    fill_event(event, from_json(data))
    message = event.SerializeToString()
    return len(message).to_bytes(4, "big") + message
