"""Events to JSON, by a plan that is made once for each class of ``ag_ui.core``.

Rule: the bytes are those of the official ``EventEncoder``, and what the official models would refuse is refused here. A
plan writes what it can tell to be right by looking: text, numbers, literals, free JSON, and models of those. An event
that holds more than that (unknown fields, values of another type, a class of one's own) is written and then read back
by its official model, which knows. That is exact and slow; no event that comes once per token needs it.
"""

import types
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from ag_ui.core import BaseEvent
from annotated_types import Ge, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, ValidationError, from_json, to_json

from app.core.errors import IllegalEvent
from app.core.order import KINDS

MAX_EVENT_BYTES = 8_000_000
"""Bytes of one encoded event. The official client gives up on a frame above 10 MB."""

MAX_INTEGER = 2**53 - 1
"""The largest that every JSON reader gets right; the official models allow no larger one."""

SHALLOW = 100
"""A value with fewer brackets than this cannot be deep."""

AROUND = 1
"""Levels around a value where it is read again, an event's. What pydantic reads of a body may be sent on, too."""

Writer = Callable[[Any], str]
"""A value as JSON. Raises ``Unsure``, or the ``TypeError`` that a string's encoder raises for anything else."""


class Unsure(TypeError):
    """The official model has to look."""


def encode(event: BaseEvent) -> bytes:
    """The event's JSON, byte for byte what the official ``EventEncoder`` puts behind ``data:``.

    Raises:
        IllegalEvent: a field holds what its type does not allow or what JSON cannot carry, or the event is too large.
    """
    kind = type(event)
    try:
        data = plan_of(kind)(event).encode()
    except (TypeError, PydanticSerializationError, UnicodeEncodeError):
        data = exactly(event)
    except KeyError as error:
        raise IllegalEvent(f"{kind.__name__} lacks {error}") from error
    if len(data) > MAX_EVENT_BYTES:
        raise IllegalEvent(f"{kind.__name__} has {len(data)} bytes, more than {MAX_EVENT_BYTES}")
    return data


def exactly(event: BaseEvent) -> bytes:
    """What the official model writes, if it understands it: fields may be set, or left out, behind its back.

    Raises:
        IllegalEvent: it does not.
    """
    kind = type(event)
    try:
        data = kind.__pydantic_serializer__.to_json(event, by_alias=True, warnings="error")
        official(kind).__pydantic_validator__.validate_json(data)
    except (PydanticSerializationError, UnicodeEncodeError) as error:
        raise IllegalEvent(f"{kind.__name__} cannot be encoded: {error}") from error
    except ValidationError as error:
        raise IllegalEvent(f"{kind.__name__} would not be understood: {error}") from error
    return data


def official(kind: type[BaseEvent]) -> type[BaseEvent]:
    """The class of the protocol that an event's class is or extends."""
    return next(base for base in kind.__mro__ if base.__module__ == BaseEvent.__module__)


# --- plans ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=KINDS)
def plan_of(kind: type[BaseModel]) -> Writer:
    """How the objects of one class are written. A class that is not the protocol's own may do anything: no plan."""
    if kind.__module__ != BaseEvent.__module__:
        return _unknown
    fields = dict(kind.model_fields)
    head = fields.pop("type").default if issubclass(kind, BaseEvent) else None
    names: dict[str, object] = {f"write_{name}": writer(field) for name, field in fields.items()}
    names |= {f"key_{name}": f',"{field.alias or name}":' for name, field in fields.items()}
    names |= {"Unsure": Unsure, "event_type": head}
    pieces = "".join(_piece(name, field) for name, field in fields.items())
    # Compiled, because a loop over the fields takes twice as long. All of the source is names of the protocol.
    exec(EVENT % (head.value, pieces) if head else OBJECT % pieces, names)  # noqa: S102
    text: Writer = names["text"]  # type: ignore[assignment]
    return text


EVENT = """
def text(event):
    values = event.__dict__
    if event.__pydantic_extra__ or values["type"] is not event_type:
        raise Unsure
    return f'''{{"type":"%s"%s}}'''
"""

OBJECT = """
def text(model):
    values = model.__dict__
    if model.__pydantic_extra__:
        raise Unsure
    return "{" + f'''%s'''[1:] + "}"
"""


def _piece(name: str, field: FieldInfo) -> str:
    """The part of an f-string that writes one field; nothing for one that may be left out and has no value."""
    if field.default is None and not field.is_required():
        return f'{{"" if (value := values["{name}"]) is None else key_{name} + write_{name}(value)}}'
    return f'{{key_{name}}}{{write_{name}(values["{name}"])}}'


# --- writers ----------------------------------------------------------------------------------------------------------


def writer(field: FieldInfo) -> Writer:
    """How values of this field are written, by its type."""
    kinds = _alternatives(field.annotation)
    if kinds == [int]:
        return _integer(field.metadata)
    return _unknown if field.metadata or int in kinds else _writer(kinds)


def _writer(kinds: Sequence[Any]) -> Writer:
    if str in kinds:
        return encode_basestring
    if kinds in ([Any], [dict[str, Any]]):
        return _json if kinds == [Any] else _object
    if all(get_origin(kind) is Literal for kind in kinds):
        return _literal({value: encode_basestring(value) for kind in kinds for value in get_args(kind)})
    if all(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds):
        return _model(frozenset(kinds))
    if len(kinds) == 1 and get_origin(kinds[0]) is list:
        return _list(_writer(_alternatives(*get_args(kinds[0]))))
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


def _integer(bounds: Sequence[object]) -> Writer:
    least = max([-MAX_INTEGER, *(bound.ge for bound in bounds if isinstance(bound, Ge))])  # type: ignore[type-var]
    most = min([MAX_INTEGER, *(bound.le for bound in bounds if isinstance(bound, Le))])  # type: ignore[type-var]

    def write(value: object) -> str:
        if type(value) is int and least <= value <= most:  # type: ignore[operator]
            return str(value)
        raise Unsure

    return write


def _json(value: object) -> str:
    """Raises ``IllegalEvent`` for what could be written, but not be read by whoever keeps it."""
    data = to_json(value, by_alias=True, inf_nan_mode="null")
    if data.count(b"[") + data.count(b"{") >= SHALLOW:
        try:
            from_json(b"[" * AROUND + data + b"]" * AROUND)
        except ValueError:
            raise IllegalEvent("a value is nested too deeply") from None
    return data.decode()


def _object(value: object) -> str:
    if type(value) is dict:
        return _json(value)
    raise Unsure


def _literal(written: Mapping[object, str]) -> Writer:
    def write(value: object) -> str:
        if isinstance(value, str) and value in written:
            return written[value]
        raise Unsure

    return write


def _model(kinds: frozenset[type[BaseModel]]) -> Writer:
    def write(value: BaseModel) -> str:
        kind = type(value)
        if kind in kinds:
            return plan_of(kind)(value)
        raise Unsure

    return write


def _list(write: Writer) -> Writer:
    def written(value: object) -> str:
        if type(value) is list:
            return f"[{','.join(map(write, value))}]"
        raise Unsure

    return written


def _unknown(_: object) -> str:
    """The official model looks."""
    raise Unsure
