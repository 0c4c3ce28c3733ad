"""Encoder from an event's JSON to its frame in AG-UI's binary encoding.

Rule: the bytes equal those of ``@ag-ui/proto`` 1.0.0 for the same JSON, for every event type.

The compiled schema decides which fields are encoded. Unknown fields, and values that are not of the field's type, are
dropped. Functions at the end handle the fields whose JSON has another structure than the message.

The members of a free JSON object are encoded in the order of a JavaScript object: array indexes first, in ascending
order, then the other names in their given order (ECMA-262, OrdinaryOwnPropertyKeys). A member named ``__proto__`` is
omitted, because in JavaScript it is the prototype of the object.

``make proto`` compiles ``agui.proto`` into ``agui.binpb``. The schema has its own descriptor pool, so that it works
with any protobuf runtime and cannot collide with messages of an agent's libraries (decision 0017).

A frame is the length in four bytes, big-endian, and the message.
Source: AG-UI spec 1.1, basic/transports/http-protobuf.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from pydantic_core import from_json

POOL = DescriptorPool()
for _file in FileDescriptorSet.FromString(Path(__file__).with_name("agui.binpb").read_bytes()).file:
    POOL.Add(_file)

EVENT = POOL.FindMessageTypeByName("ag_ui.Event")
BASE_EVENT = POOL.FindMessageTypeByName("ag_ui.BaseEvent")

Event = GetMessageClass(EVENT)
"""Message of one event. Exactly one of its fields is set, the one of the event's type."""

MAX_INDEX = 2**32 - 2
"""The largest array index of JavaScript. Greater numbers are ordinary member names."""

PROTOTYPE = "__proto__"


def fill_value(message: Any, value: Any) -> None:  # noqa: ANN401 - a JsonValue, and any JSON
    """Set a ``JsonValue`` member by member, because one call for a large value would block all other threads."""
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
    """Return a number as a double, as in JavaScript. Integers that are too large become infinite."""
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
"""Function that sets a message, or one field of it, from a JSON value."""
Accepts = Callable[[Any], bool]


def fill_event(message: Any, event: JsonObject) -> None:  # noqa: ANN401 - an Event
    """Set an ``Event`` from its JSON. Raises ``KeyError`` if the schema does not have the event's type."""
    arm = event["type"].lower()
    inner = getattr(message, arm)
    ARMS[arm](inner, event)
    BASE(inner.base_event, event)


# --- plans from the schema ---


def _message(descriptor: Descriptor) -> Fill:
    """Return the function that sets a message whose fields have the same names as in JSON."""
    reshape = RESHAPED.get(descriptor.name)
    fields = {field.json_name: _field(field) for field in descriptor.fields if field.name != "base_event"}

    def fill(message: Any, value: JsonObject) -> None:  # noqa: ANN401 - any message
        message.SetInParent()
        for name, member in (reshape(value) if reshape else value).items():
            if name in fields:
                fields[name](message, member)

    return fill


def _union(descriptor: Descriptor) -> Fill:
    """Return the function that sets a message with one field, whose name is ``type`` in JSON."""
    arms = _oneof_fields(descriptor)

    def fill(message: Any, value: JsonObject) -> None:  # noqa: ANN401 - any message
        arms[value["type"]](getattr(message, value["type"]), value)

    return fill


def _oneof_fields(descriptor: Descriptor) -> dict[str, Fill]:
    return {field.name: _message(field.message_type) for field in descriptor.fields if field.message_type}


def _field(field: FieldDescriptor) -> Fill:
    """Return the function that sets one field of a message."""
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
    """Return two functions for a field of message type: the check of the JSON value, and the one that sets it."""
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


# --- fields that differ from their JSON ---


def _content(value: JsonObject) -> JsonObject:
    """Rename ``content`` to the message field for its form: text, content parts or activity content."""
    content = value.get("content")
    form = "content"
    if isinstance(content, list):
        form = "contentParts"
    elif value.get("role") == "activity":
        form, content = "activityContent", content or {}
    return {**value, "content": None, "contentParts": None, form: content}


def _outcome(value: JsonObject) -> JsonObject:
    """Flatten ``outcome``: the message has its type and its payload as two fields."""
    outcome = value.get("outcome")
    flat = {**value, "outcome": None, **dict.fromkeys(OUTCOME_FIELDS.values())}
    if isinstance(outcome, dict):
        kind = outcome.get("type")
        flat["outcome"] = kind
        if kind in OUTCOME_FIELDS:
            flat[OUTCOME_FIELDS[kind]] = outcome.get(OUTCOME_FIELDS[kind])
    return flat


OUTCOME_FIELDS = {"success": "pendingToolCallIds", "interrupt": "interrupts", "suspended": "interruptIds"}
"""Payload field of an outcome, by its type."""

RESHAPED: Mapping[str, Callable[[JsonObject], JsonObject]] = {
    "Message": _content,
    "ToolCallResultEvent": _content,
    "RunFinishedEvent": _outcome,
    "SubagentFinishedEvent": _outcome,
}

ARMS = _oneof_fields(EVENT)
BASE = _message(BASE_EVENT)


def encode_frame(data: bytes) -> bytes:
    """Encode the frame of one event.

    Args:
        data: JSON of the event from ``protocol.encoder``.
    """
    event = Event()
    fill_event(event, from_json(data))
    message = event.SerializeToString()
    return len(message).to_bytes(4, "big") + message
