"""Encoder from events to JSON, with one plan for each class of ``ag_ui.core``.

Rule: the bytes equal those of the official ``EventEncoder``, and an event that the official models refuse is refused
here. One exception: integers that a double cannot hold become null, like infinite numbers, because clients fail on
them.

A plan checks text, numbers, literals, free JSON and models of those, and orjson writes the same bytes as pydantic. If
an event has unknown fields, values of another type or a class outside ``ag_ui.core``, the plan raises
``PlanMismatch``. pydantic then encodes the event, and the official model validates the bytes. This path is exact but
slow. Events that occur once per token do not need it.
"""

import types
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import orjson
from ag_ui.core import BaseEvent
from annotated_types import Ge, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, ValidationError, from_json, to_json

from agui_container.protocol.strict_json import whole_value, without_large_integers
from agui_core.expander import IllegalEvent
from agui_core.type_cache import TypeCache

MAX_EVENT_BYTES = 8_000_000
"""Maximum number of bytes of one encoded event. The official client fails on a frame above 10 MB."""

MAX_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader parses exactly. The official models allow no larger one."""

DEPTH_CHECK_BRACKETS = 100
"""Number of opening brackets from which the nesting depth of a value is checked. Fewer cannot be too deep."""

WRAPPER_LEVELS = 1
"""Number of JSON levels around a value inside its event. A value must still be readable at that depth."""

NULL = b"null"

COPY = b"%b"
"""Format that copies the bytes of orjson. The original keeps its whole 4 KB buffer alive."""

Event = TypeVar("Event", bound=BaseEvent)

Layout = Callable[[Any], object]
"""Function from a field's value to the value that orjson writes. Raises ``PlanMismatch``."""


class PlanMismatch(TypeError):
    """A value that a plan does not cover. The official model encodes and validates the event instead."""


def encode(event: BaseEvent) -> bytes:
    """Encode byte for byte like the official ``EventEncoder`` after ``data:``. Raises ``IllegalEvent``."""
    kind = type(event)
    try:
        data = COPY % orjson.dumps(PLANS[kind](event))
    except (TypeError, PydanticSerializationError):
        data = encode_with_pydantic(event)
    except KeyError as error:
        raise IllegalEvent(f"{kind.__name__} lacks {error}") from error
    if len(data) > MAX_EVENT_BYTES:
        raise IllegalEvent(f"{kind.__name__} has {len(data)} bytes, more than {MAX_EVENT_BYTES}")
    return data


def encode_whole(event: Event) -> tuple[Event, bytes]:
    """Return the event and its JSON, with U+FFFD for half of a surrogate pair. Raises ``IllegalEvent``."""
    try:
        return event, encode(event)
    except IllegalEvent as error:
        if not isinstance(error.__cause__, PydanticSerializationError | UnicodeEncodeError):
            raise
        fields = event.model_dump(by_alias=True, warnings=False)
        if (whole := whole_value(fields)) == fields:
            raise
        repaired = type(event).model_validate(whole)
        return repaired, encode(repaired)


def encode_with_pydantic(event: BaseEvent) -> bytes:
    """Validate with the official model, too: fields can be set or removed after the event was validated."""
    kind = type(event)
    try:
        data = without_large_integers(kind.__pydantic_serializer__.to_json(event, by_alias=True, warnings="error"))
        official_class(kind).__pydantic_validator__.validate_json(data)
    except (PydanticSerializationError, UnicodeEncodeError) as error:
        raise IllegalEvent(f"{kind.__name__} cannot be encoded: {error}") from error
    except ValidationError as error:
        raise IllegalEvent(f"{kind.__name__} would not be understood: {error}") from error
    return data


def official_class(kind: type[BaseEvent]) -> type[BaseEvent]:
    return next(base for base in kind.__mro__ if base.__module__ == BaseEvent.__module__)


# --- plans ------------------------------------------------------------------------------------------------------------


FieldPlan = tuple[str, str, bool, Layout]
"""Plan for one field: its name in the model and in the JSON, whether it is left out without a value, and its layout.

A tuple, because Python unpacks a named one in twice the time.
"""


def plan_for(kind: type[BaseModel]) -> Layout:
    """Return the plan for objects of one class. Classes outside ``ag_ui.core`` get one that raises ``PlanMismatch``."""
    if kind.__module__ != BaseEvent.__module__:
        return _always_mismatch
    fields = dict(kind.model_fields)
    event_type = fields.pop("type").default if issubclass(kind, BaseEvent) else None
    plans: list[FieldPlan] = [
        (name, field.alias or name, _is_optional(field), layout_for(field)) for name, field in fields.items()
    ]
    start: dict[str, object] = {"type": event_type.value} if event_type else {}

    def plan(model: BaseModel) -> object:
        values = model.__dict__
        if model.__pydantic_extra__ or (event_type and values["type"] is not event_type):
            raise PlanMismatch
        members = start.copy()
        for name, key, is_optional, lay in plans:
            value = values[name]
            if lay is _text and type(value) is str:
                members[key] = value  # most fields are text, and a call costs more than the rest
            elif value is not None or not is_optional:
                members[key] = lay(value)
        return members

    return plan


PLANS = TypeCache(plan_for)


def _is_optional(field: FieldInfo) -> bool:
    return field.default is None and not field.is_required()


# --- layouts ----------------------------------------------------------------------------------------------------------


def layout_for(field: FieldInfo) -> Layout:
    """Return the layout for values of this field, chosen by the field's type."""
    kinds = _alternatives(field.annotation)
    if kinds == [int]:
        return _integer(field.metadata)
    if field.metadata or int in kinds:
        return _always_mismatch
    return _optional_json if kinds == [Any] and _is_optional(field) else _layout_for_types(kinds)


def _layout_for_types(kinds: Sequence[Any]) -> Layout:
    if str in kinds:
        return _text
    if kinds in ([Any], [dict[str, Any]]):
        return _json if kinds == [Any] else _object
    if all(get_origin(kind) is Literal for kind in kinds):
        return _literal(frozenset(value for kind in kinds for value in get_args(kind)))
    if all(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds):
        return _model(frozenset(kinds))
    if len(kinds) == 1 and get_origin(kinds[0]) is list:
        return _list(_layout_for_types(_alternatives(*get_args(kinds[0]))))
    return _always_mismatch


def _alternatives(annotation: object) -> list[object]:
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return [kind for member in inside if member is not type(None) for kind in _alternatives(member)]
    if origin is Annotated and all(isinstance(info, FieldInfo) and not info.metadata for info in inside[1:]):
        return _alternatives(inside[0])  # a FieldInfo without constraints only names the discriminator
    return [_builtin(annotation)]


def _builtin(kind: object) -> object:
    return dict[get_args(kind)] if get_origin(kind) is dict else kind  # type: ignore[misc]


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise PlanMismatch


def _integer(bounds: Sequence[object]) -> Layout:
    least = max([-MAX_INTEGER, *(bound.ge for bound in bounds if isinstance(bound, Ge))])  # type: ignore[type-var]
    most = min([MAX_INTEGER, *(bound.le for bound in bounds if isinstance(bound, Le))])  # type: ignore[type-var]

    def integer(value: object) -> int:
        if type(value) is int and least <= value <= most:  # type: ignore[operator]
            return value
        raise PlanMismatch

    return integer


def _json(value: object) -> orjson.Fragment:
    return orjson.Fragment(_dump_value(value))


def _optional_json(value: object) -> orjson.Fragment:
    """Lay out an optional field. Values that become null, such as infinite numbers, take the slow path."""
    data = _dump_value(value)
    if data == NULL:
        raise PlanMismatch
    return orjson.Fragment(data)


def _dump_value(value: object) -> bytes:
    """Pydantic knows more types than orjson. ``IllegalEvent`` is raised for JSON that readers could not parse."""
    data = without_large_integers(to_json(value, by_alias=True, inf_nan_mode="null"))
    if data.count(b"[") + data.count(b"{") >= DEPTH_CHECK_BRACKETS:
        try:
            from_json(b"[" * WRAPPER_LEVELS + data + b"]" * WRAPPER_LEVELS)
        except ValueError:
            raise IllegalEvent("a value is nested too deeply") from None
    return data


def _object(value: object) -> orjson.Fragment:
    if type(value) is dict:
        return _json(value)
    raise PlanMismatch


def _literal(allowed: frozenset[str]) -> Layout:
    def literal(value: object) -> str:
        if isinstance(value, str) and value in allowed:
            return value
        raise PlanMismatch

    return literal


def _model(kinds: frozenset[type[BaseModel]]) -> Layout:
    def model(value: BaseModel) -> object:
        kind = type(value)
        if kind in kinds:
            return PLANS[kind](value)
        raise PlanMismatch

    return model


def _list(lay: Layout) -> Layout:
    def items(value: object) -> list[object]:
        if type(value) is list:
            return list(map(lay, value))
        raise PlanMismatch

    return items


def _always_mismatch(_: object) -> object:
    raise PlanMismatch
