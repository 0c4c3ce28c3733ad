"""Arbitrary events of every class, with random values for the fields of the official models."""

from random import Random
from types import NoneType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from ag_ui.core import BaseEvent
from pydantic import BaseModel

from tests.protocol.samples import SAMPLES, TRICKY

CLASSES = sorted({type(event) for event in SAMPLES}, key=lambda kind: kind.__name__)

TEXTS = ("", "a", "two words", TRICKY, "x" * 130, "\N{PILE OF POO}" * 40)
NUMBERS = (0, 1, -1, 0.1, -0.0, 1e308, 5e-324, 2**53, -(2**70), 10**400, -(10**400))
KEYS = ("", "b", "a", "10", "2", "0", "007", "-1", "4294967294", "4294967295", "1.5", "\u0663", TRICKY)
INTEGERS = (0, 1, 127, 128, 2**31, 2**53 - 1, -1, -(2**53 - 1))
NATURAL = tuple(number for number in INTEGERS if number >= 0)
POINTERS = ("", "/a", "/a~1b/0", "/\N{GRINNING FACE}")
DEPTH = 4


def event(rng: Random, kind: type[BaseEvent]) -> BaseEvent:
    """Return one event of a class."""
    made = _model(rng, kind, DEPTH)
    assert isinstance(made, BaseEvent)
    return made


def json_value(rng: Random, depth: int = DEPTH) -> object:
    """Return any JSON value."""
    kinds: tuple[object, ...] = (None, True, False, rng.choice(TEXTS), rng.choice(NUMBERS), rng.uniform(-1e6, 1e6))
    if depth > 0 and rng.random() < 0.6:
        return json_object(rng, depth - 1) if rng.random() < 0.6 else _list(rng, Any, depth - 1)
    return rng.choice(kinds)


def json_object(rng: Random, depth: int = DEPTH) -> dict[str, object]:
    """Return any JSON object."""
    return {key: json_value(rng, depth) for key in rng.sample(KEYS, rng.randrange(6))}


def _model(rng: Random, kind: type[BaseModel], depth: int) -> BaseModel:
    fields: dict[str, object] = {}
    for name, field in kind.model_fields.items():
        if field.is_required() or rng.random() < 0.5:
            fields[field.alias or name] = _typed(rng, field.annotation, depth, (*field.metadata, name))
    return kind.model_validate(fields)


def _typed(rng: Random, annotation: Any, depth: int, hints: tuple[Any, ...] = ()) -> object:  # noqa: ANN401
    """A value of a field's type; ``hints`` are what else is known of the field."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Annotated, Union):
        chosen = (
            arguments[0] if origin is Annotated else rng.choice([each for each in arguments if each is not NoneType])
        )
        return _typed(rng, chosen, depth, hints if origin is Union else (*hints, *arguments[1:]))
    if origin is Literal:
        return rng.choice(arguments)
    if origin is list:
        return _list(rng, arguments[0], depth - 1, least=1 if "interrupts" in hints else 0)
    if origin is dict:
        return json_object(rng, depth - 1)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _model(rng, annotation, depth - 1)
    return _scalar(rng, annotation, depth, hints)


def _scalar(rng: Random, annotation: Any, depth: int, hints: tuple[Any, ...]) -> object:  # noqa: ANN401
    if annotation is str:
        pattern = any(getattr(hint, "pattern", None) for hint in _flat(hints))
        return rng.choice(POINTERS if pattern else TEXTS)
    if annotation is int:
        return rng.choice(INTEGERS if "timestamp" in hints else NATURAL)
    return rng.choice((True, False)) if annotation is bool else json_value(rng, depth)


def _flat(hints: tuple[Any, ...]) -> list[Any]:
    return [inner for hint in hints for inner in (hint, *getattr(hint, "metadata", ()))]


def _list(rng: Random, item: Any, depth: int, least: int = 0) -> list[object]:  # noqa: ANN401
    return [_typed(rng, item, depth) for _ in range(rng.randrange(least, 4))]
