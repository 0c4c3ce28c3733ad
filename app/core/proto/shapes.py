"""An event's JSON in the shape of its message, along the schema's own field names.

Rule: the schema decides. A field that it does not have stays behind, as every binary encoder leaves it (AG-UI spec 1.1,
basic/transports/http-protobuf: the wire is narrower), and so does a value that is not of the field's type. The places
where JSON and messages differ by more than names are the functions at the end.
"""

from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from app.core.proto.anything import Shape, object_shape, value_shape
from app.core.proto.schema import BASE_EVENT, EVENT

JsonObject = Mapping[str, Any]
Convert = Callable[[Any], Any]
"""A JSON value to what a field takes; None leaves the field out."""


def event_shape(event: JsonObject) -> Shape:
    """``Event``, from an event's JSON object. Raises ``KeyError`` for a type that the schema does not have."""
    arm = event["type"].lower()
    fields = ARMS[arm](event)
    fields["base_event"] = BASE(event)
    return {arm: fields}


# --- along the schema ---


def _message(descriptor: Descriptor) -> Convert:
    """For a message whose fields are named as in JSON."""
    reshape = RESHAPED.get(descriptor.name)
    fields = {field.json_name: (field.name, _field(field)) for field in descriptor.fields if field.name != "base_event"}

    def convert(value: Any) -> Shape | None:  # noqa: ANN401 - JSON
        if not isinstance(value, dict):
            return None
        shape: Shape = {}
        for name, member in (reshape(value) if reshape else value).items():
            if name in fields:
                field, convert_member = fields[name]
                converted = convert_member(member)
                if converted is not None:
                    shape[field] = converted
        return shape

    return convert


def _union(descriptor: Descriptor) -> Convert:
    """For a message whose one field is named by JSON's ``type``."""
    arms = _arms(descriptor)

    def convert(value: Any) -> Shape | None:  # noqa: ANN401 - JSON
        arm = value.get("type") if isinstance(value, dict) else None
        return {arm: arms[arm](value)} if arm in arms else None

    return convert


def _arms(descriptor: Descriptor) -> dict[str, Convert]:
    return {field.name: _message(field.message_type) for field in descriptor.fields if field.message_type}


def _field(field: FieldDescriptor) -> Convert:
    convert = _single(field)
    if not field.is_repeated:
        return convert

    def each(value: Any) -> list[Any]:  # noqa: ANN401 - JSON
        items = value if isinstance(value, list) else []
        return [converted for item in items if (converted := convert(item)) is not None]

    return each


def _single(field: FieldDescriptor) -> Convert:
    if field.message_type is None:
        return SCALARS[field.type]
    if field.message_type.name == "JsonValue":
        return value_shape if field.containing_oneof is None else _unless_null
    if field.message_type.name == "JsonObject":
        return lambda value: object_shape(value) if isinstance(value, dict) else None
    return (_union if field.message_type.name in UNIONS else _message)(field.message_type)


def _unless_null(value: Any) -> Shape | None:  # noqa: ANN401 - JSON
    return None if value is None else value_shape(value)


def _of(kind: type) -> Convert:
    return lambda value: value if type(value) is kind else None


# --- where JSON differs ---


def _content(value: JsonObject) -> JsonObject:
    """One ``content`` in JSON; a field for each form it may have in a message."""
    content = value.get("content")
    form = "content"
    if isinstance(content, list):
        form = "contentParts"
    elif value.get("role") == "activity":
        form, content = "activityContent", content or {}
    return {**value, "content": None, "contentParts": [], form: content}


def _outcome(value: JsonObject) -> JsonObject:
    """JSON's outcome is an object, and the message has its type and what it holds side by side."""
    outcome = value.get("outcome")
    flat = {**value, "outcome": None, **dict.fromkeys(HELD.values(), ())}
    if isinstance(outcome, dict):
        kind = outcome.get("type")
        flat["outcome"] = kind
        if kind in HELD:
            flat[HELD[kind]] = outcome.get(HELD[kind])
    return flat


UNIONS = frozenset({"InputContent", "InputContentSource"})

HELD = {"success": "pendingToolCallIds", "interrupt": "interrupts", "suspended": "interruptIds"}
"""What an outcome of this type holds."""

RESHAPED: Mapping[str, Callable[[JsonObject], JsonObject]] = {
    "Message": _content,
    "ToolCallResultEvent": _content,
    "RunFinishedEvent": _outcome,
    "SubagentFinishedEvent": _outcome,
}

SCALARS: Mapping[int, Convert] = {
    FieldDescriptor.TYPE_STRING: _of(str),
    FieldDescriptor.TYPE_BOOL: _of(bool),
    FieldDescriptor.TYPE_INT64: _of(int),
    FieldDescriptor.TYPE_ENUM: lambda value: value.upper(),
}

ARMS = _arms(EVENT)
BASE = _message(BASE_EVENT)
