"""Data against a JSON Schema that a caller wrote, in bounded time whatever the schema is.

Rule: the schema is untrusted. Nothing is fetched for it, its patterns are matched by an engine that takes linear time
(Rust's, by pydantic), and a check that needs too much work is given up. What would get around that is refused before:
keywords with patterns or references of their own. Imported when the first goal is declared: jsonschema takes 0.2 s.

Source: JSON Schema 2020-12; ``format`` says something to the model and is not checked.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice

from jsonschema import Draft202012Validator, ValidationError  # type: ignore[import-untyped]
from jsonschema.validators import create  # type: ignore[import-untyped]
from msgspec import Struct
from pydantic_core import SchemaError, SchemaValidator, core_schema, to_json
from referencing import Registry

MAX_DATA = 100_000
"""Bytes of a goal's data as JSON."""
MAX_WORK = 60_000
"""What one check may do: 1 is a look at a part of the schema, and jsonschema looks at each twice."""

COMPILING = 3_000
"""What it is to make a pattern ready in the middle of a check: a tenth of a second, with the interpreter held."""
KEPT_PATTERNS = 32
"""Each may take 10 MB, Rust's own bound."""

SHOWN_FAULTS = 5
SHOWN_CHARACTERS = 300
"""How much a model is told of what is wrong."""

UNCHECKED = {"$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$schema"}
UNCHECKED |= {"patternProperties", "unevaluatedItems", "unevaluatedProperties"}
"""Keywords that are not taken: each would lead a check out of these bounds."""
ONE = {"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"}
LISTED = {"allOf", "anyOf", "oneOf", "prefixItems"}
NAMED = {"$defs", "definitions", "dependentSchemas", "properties"}
"""Keywords that hold a schema, a list of them, and schemas by name."""
REFERENCE = re.compile(r"#|#/(\$defs|definitions)/([^/%~]+)")

Schema = Mapping[str, object]

Check = Callable[[Draft202012Validator, object, object, Schema], Iterable[ValidationError] | None]
"""What a keyword does, as jsonschema calls it: with its value, the data, and the schema that it stands in."""

DEEP = {"const", "enum", "uniqueItems"}
"""Keywords that look at all that lists and objects hold."""

_META = Draft202012Validator(Draft202012Validator.META_SCHEMA)
_work: ContextVar["_WorkBudget"] = ContextVar("_work")


class _TooMuchWork(Exception):
    """A check has done what it may."""


class _WorkBudget(Struct):
    remaining: float = MAX_WORK

    def spend(self, amount: float) -> None:
        self.remaining -= amount
        if self.remaining < 0:
            raise _TooMuchWork


# --- the schema -------------------------------------------------------------------------------------------------------


def schema_problem(schema: Schema) -> str | None:
    """Why a schema is not taken, behind the path to the place; None where it can be checked.

    Takes some 50 ms per 1,000 bytes.
    """
    if schema.get("type") != "object":
        return ".type: must be 'object', because data is given as the arguments of a tool."
    try:
        wrong: ValidationError | None = next(_META.iter_errors(schema), None)
    except RecursionError:
        return ": is nested too deeply."
    if wrong is not None:
        return f"{''.join(f'.{part}' for part in wrong.absolute_path)}: {_clip(wrong.message)}."
    return next(_unsupported_keyword(schema, "", schema), None)


def _unsupported_keyword(schema: Schema, path: str, root: Schema) -> Iterator[str]:
    """What of a well-formed schema cannot be checked here."""
    for key, value in schema.items():
        where = f"{path}.{key}"
        if key in UNCHECKED:
            yield f"{where}: is not checked here."
        elif key == "$ref" and not _is_known(str(value), root):
            yield f"{where}: must be '#' or name one of the schema's own $defs."
        elif key == "pattern" and _matcher(str(value)) is None:
            yield f"{where}: cannot be matched in linear time."
        for name, inner in _inner(key, value):
            if isinstance(inner, dict):
                yield from _unsupported_keyword(inner, f"{where}{name}", root)


def _inner(key: str, value: object) -> Iterable[tuple[str, object]]:
    """The schemas that a keyword holds, each behind its path."""
    if key in ONE:
        return [("", value)]
    if key in LISTED and isinstance(value, list):
        return [(f".{at}", inner) for at, inner in enumerate(value)]
    if key in NAMED and isinstance(value, dict):
        return [(f".{name}", inner) for name, inner in value.items()]
    return []


def _is_known(reference: str, root: Schema) -> bool:
    found = REFERENCE.fullmatch(reference)
    if found is None or found[1] is None:
        return found is not None
    definitions = root.get(found[1])
    return isinstance(definitions, dict) and found[2] in definitions


def count_patterns(part: object) -> int:
    """How many patterns a schema, or a part of one, has."""
    if isinstance(part, list):
        return sum(map(count_patterns, part))
    if not isinstance(part, dict):
        return 0
    return isinstance(part.get("pattern"), str) + sum(map(count_patterns, part.values()))


@lru_cache(maxsize=KEPT_PATTERNS)
def _matcher(pattern: str) -> SchemaValidator | None:
    """The pattern as Rust has it, which knows neither looking around nor back; None for what it cannot read."""
    work = _work.get(None)
    if work is not None:
        work.spend(COMPILING)
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return None


# --- the data ---------------------------------------------------------------------------------------------------------


def validation_errors(schema: Schema, data: Mapping[str, object]) -> list[str]:
    """What is wrong with the data, for the model to correct; nothing where it is right. ``schema`` has no problem."""
    if len(to_json(data)) > MAX_DATA:
        return [f"has more than {MAX_DATA} bytes as JSON"]
    token = _work.set(_WorkBudget())
    try:
        errors = list(islice(_Bounded(schema, registry=Registry()).iter_errors(data), SHOWN_FAULTS))
    except (_TooMuchWork, OverflowError, RecursionError):
        return ["takes too much work to check"]
    finally:
        _work.reset(token)
    return [_error_text(error) for error in errors]


def _error_text(error: ValidationError) -> str:
    where = ".".join(map(str, error.absolute_path))
    return f"'{where}': {_clip(error.message)}" if where else _clip(error.message)


def _clip(message: str) -> str:
    return message if len(message) <= SHOWN_CHARACTERS else f"{message[:SHOWN_CHARACTERS]}…"


def _keywords(schema: Schema) -> Iterable[tuple[str, object]]:
    """What jsonschema asks of every part that it comes to."""
    _work.get().spend(1)
    return schema.items()


def _metered(keyword: str, check: Check) -> Check:
    """The same check, which spends before it works, and again for each error that it finds."""

    def paid(validator: Draft202012Validator, value: object, data: object, schema: Schema) -> Iterator[ValidationError]:
        work = _work.get()
        work.spend(_cost(keyword, value, data))
        for error in check(validator, value, data, schema) or ():
            work.spend(1 + len(error.message) / 100)
            yield error

    return paid


def _cost(keyword: str, value: object, data: object) -> float:
    """By how much there is to look at. A schema that is ``false`` is never come to, and says the data back."""
    members = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else [value]
    has_parts = isinstance(data, list | dict)
    price = len(members) / 10
    if isinstance(data, list | dict | str):
        price += len(data) / (10 if has_parts else 1_000)
    thorough = sum(member is False for member in members) + (len(members) if has_parts and keyword in DEEP else 0)
    return price + thorough * (1 + len(repr(data)) / 100) if thorough else price


def _pattern(_: Draft202012Validator, pattern: object, data: object, __: Schema) -> Iterator[ValidationError]:
    matcher = _matcher(str(pattern))
    if isinstance(data, str) and not (matcher and matcher.isinstance_python(data)):
        yield ValidationError(f"{data!r} does not match {pattern!r}")


def _unique(_: Draft202012Validator, unique: object, data: object, __: Schema) -> Iterator[ValidationError]:
    """By what the items are as JSON: comparing each with each takes quadratic time."""
    if unique and isinstance(data, list) and len({json.dumps(item, sort_keys=True) for item in data}) < len(data):
        yield ValidationError("has the same item twice")


_CHECKS: Mapping[str, Check] = {**Draft202012Validator.VALIDATORS, "pattern": _pattern, "uniqueItems": _unique}
_Bounded = create(
    Draft202012Validator.META_SCHEMA,
    {keyword: _metered(keyword, check) for keyword, check in _CHECKS.items()},
    applicable_validators=_keywords,
)
