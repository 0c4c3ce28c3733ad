"""Events to JSON, by a plan that is made once for each class of ``ag_ui.core``.

Rule: the bytes are those of the official ``EventEncoder``, and what the official models would refuse is refused here;
only integers that a double cannot hold become null, like infinite numbers, because clients fail on them. A
plan lays out what it can tell to be right by looking: text, numbers, literals, free JSON, and models of those; orjson
writes it, in the same bytes as pydantic would. An event that holds more than that (unknown fields, values of another
type, a class of one's own) is written and then read back by its official model, which knows. That is exact and slow; no
event that comes once per token needs it.
"""

import types
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import orjson
from ag_ui.core import BaseEvent
from annotated_types import Ge, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, ValidationError, from_json, to_json

from agui_container.protocol.errors import IllegalEvent
from agui_container.protocol.integers import without_large_integers
from agui_container.protocol.type_cache import TypeCache

MAX_EVENT_BYTES = 8_000_000
"""Bytes of one encoded event. The official client gives up on a frame above 10 MB."""

MAX_INTEGER = 2**53 - 1
"""The largest that every JSON reader gets right; the official models allow no larger one."""

SHALLOW = 100
"""A value with fewer brackets than this cannot be deep."""

AROUND = 1
"""Levels around a value where it is read again, an event's. What pydantic reads of a body may be sent on, too."""

NULL = b"null"

COPY = b"%b"
"""A copy of orjson's bytes, which hold on to the buffer they were written in: 4 KB for a token that is kept."""

Layout = Callable[[Any], object]
"""A value as orjson is to write it. Raises ``PlanMismatch``."""


class PlanMismatch(TypeError):
    """The official model has to look."""


def encode(event: BaseEvent) -> bytes:
    """The event's JSON, byte for byte what the official ``EventEncoder`` puts behind ``data:``.

    Raises:
        IllegalEvent: a field holds what its type does not allow or what JSON cannot carry, or the event is too large.
    """
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


def encode_with_pydantic(event: BaseEvent) -> bytes:
    """What the official model writes, if it understands it: fields may be set, or left out, behind its back.

    Raises:
        IllegalEvent: it does not.
    """
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
    """The class of the protocol that an event's class is or extends."""
    return next(base for base in kind.__mro__ if base.__module__ == BaseEvent.__module__)


# --- plans ------------------------------------------------------------------------------------------------------------


def plan_for(kind: type[BaseModel]) -> Layout:
    """How the objects of one class are laid out. A class that is not the protocol's own may do anything: no plan."""
    if kind.__module__ != BaseEvent.__module__:
        return _unknown
    fields = dict(kind.model_fields)
    head = fields.pop("type").default if issubclass(kind, BaseEvent) else None
    names: dict[str, object] = {f"lay_{name}": layout_for(field) for name, field in fields.items()}
    names |= {"Unsure": PlanMismatch, "event_type": head}
    pieces = "".join(_field_code(name, field) for name, field in fields.items())
    # Compiled, because a loop over the fields takes twice as long. All of the source is names of the protocol.
    exec(EVENT % (head.value, pieces) if head else OBJECT % pieces, names)  # noqa: S102
    laid_out: Layout = names["laid_out"]  # type: ignore[assignment]
    return laid_out


PLANS = TypeCache(plan_for)

EVENT = """
def laid_out(event):
    values = event.__dict__
    if event.__pydantic_extra__ or values["type"] is not event_type:
        raise Unsure
    members = {"type": "%s"}%s
    return members
"""

OBJECT = """
def laid_out(model):
    values = model.__dict__
    if model.__pydantic_extra__:
        raise Unsure
    members = {}%s
    return members
"""

OPTIONAL = """
    if (value := values["{name}"]) is not None:
        members["{key}"] = lay_{name}(value)"""

TEXT = """
    if not isinstance(value := values["{name}"], str):
        raise Unsure
    members["{key}"] = value"""

REQUIRED = """
    members["{key}"] = lay_{name}(values["{name}"])"""


def _field_code(name: str, field: FieldInfo) -> str:
    """The lines that lay out one field. One that may be left out and has no value is."""
    present = TEXT if layout_for(field) is _text else REQUIRED
    piece = OPTIONAL if _is_optional(field) else present
    return piece.format(name=name, key=field.alias or name)


def _is_optional(field: FieldInfo) -> bool:
    return field.default is None and not field.is_required()


# --- layouts ----------------------------------------------------------------------------------------------------------


def layout_for(field: FieldInfo) -> Layout:
    """How values of this field are laid out, by its type."""
    kinds = _alternatives(field.annotation)
    if kinds == [int]:
        return _integer(field.metadata)
    if field.metadata or int in kinds:
        return _unknown
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
    return _unknown


def _alternatives(annotation: object) -> list[object]:
    """The members of a union without None; one type is a union of itself."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return [kind for member in inside if member is not type(None) for kind in _alternatives(member)]
    if origin is Annotated and all(isinstance(mark, FieldInfo) and not mark.metadata for mark in inside[1:]):
        return _alternatives(inside[0])  # a mark without constraints names the discriminator
    return [_builtin(annotation)]


def _builtin(kind: object) -> object:
    """``dict[…]`` for ``typing.Dict[…]``."""
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
    """Of a field that may be left out. What becomes null, such as an infinite number, is left out as well."""
    data = _dump_value(value)
    if data == NULL:
        raise PlanMismatch
    return orjson.Fragment(data)


def _dump_value(value: object) -> bytes:
    """By pydantic, which knows more types. Raises ``IllegalEvent`` for what nobody who keeps it could read again."""
    data = without_large_integers(to_json(value, by_alias=True, inf_nan_mode="null"))
    if data.count(b"[") + data.count(b"{") >= SHALLOW:
        try:
            from_json(b"[" * AROUND + data + b"]" * AROUND)
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


def _unknown(_: object) -> object:
    """The official model looks."""
    raise PlanMismatch
