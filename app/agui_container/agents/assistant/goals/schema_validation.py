"""Validation of data against a caller's JSON Schema, in bounded time for any schema.

Rule: the schema is untrusted. No reference is fetched. Patterns are matched in linear time by Rust's engine, through
pydantic. A validation that needs too much work is aborted. Keywords that would evade these bounds are rejected when the
goal is declared. This module is imported with the first goal, because importing jsonschema takes 0.2 s.

Source: JSON Schema 2020-12. ``format`` is an annotation for the model and is not validated.
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
"""Maximum bytes of a goal's data as JSON."""
MAX_WORK = 60_000
"""Maximum work units of one validation. One unit is one visit to a subschema. jsonschema visits each twice."""

COMPILE_WORK = 3_000
"""Work units for compiling a pattern during a validation. It can take 0.1 s and blocks the interpreter."""
MAX_CACHED_PATTERNS = 32
"""Maximum number of compiled patterns in the cache. Each may take 10 MB, Rust's own limit."""

MAX_SHOWN_ERRORS = 5
"""Maximum number of validation errors in a result for the model."""
MAX_SHOWN_CHARACTERS = 300
"""Maximum characters of one error's text."""

UNSUPPORTED = {"$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$schema"}
UNSUPPORTED |= {"patternProperties", "unevaluatedItems", "unevaluatedProperties"}
"""Keywords that are rejected, because a validation with one of them could evade the bounds."""
SINGLE_SCHEMA = {"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"}
SCHEMA_LISTS = {"allOf", "anyOf", "oneOf", "prefixItems"}
SCHEMA_MAPS = {"$defs", "definitions", "dependentSchemas", "properties"}
"""Keywords whose value is a schema, a list of schemas, or schemas by name, in this order."""
REFERENCE = re.compile(r"#|#/(\$defs|definitions)/([^/%~]+)")

Schema = Mapping[str, object]

Check = Callable[[Draft202012Validator, object, object, Schema], Iterable[ValidationError] | None]
"""Validator function of a keyword in jsonschema. Arguments: validator, keyword's value, data, enclosing schema."""

DEEP_KEYWORDS = {"const", "enum", "uniqueItems"}
"""Keywords that compare lists and objects with all their members."""

_META = Draft202012Validator(Draft202012Validator.META_SCHEMA)
_work: ContextVar["WorkBudget"] = ContextVar("_work")


class _TooMuchWork(Exception):
    """A validation has used up its work units."""


class WorkBudget(Struct):
    """Work units that validations may still spend."""

    remaining: float = MAX_WORK

    def spend(self, amount: float) -> None:
        """Spend work units. Raises ``_TooMuchWork`` if there are not enough."""
        self.remaining -= amount
        if self.remaining < 0:
            raise _TooMuchWork


# --- schemas --------------------------------------------------------------------------------------------------------


def schema_problem(schema: Schema) -> str | None:
    """Return the reason why a schema is rejected, with the path of its keyword; None if it is supported.

    This takes about 50 ms per 1,000 bytes of schema.
    """
    if schema.get("type") != "object":
        return ".type: must be 'object', because data is given as the arguments of a tool."
    try:
        error: ValidationError | None = next(_META.iter_errors(schema), None)
    except RecursionError:
        return ": is nested too deeply."
    if error is not None:
        return f"{''.join(f'.{part}' for part in error.absolute_path)}: {_clip(error.message)}."
    return next(_unsupported_keywords(schema, "", schema), None)


def _unsupported_keywords(schema: Schema, path: str, root: Schema) -> Iterator[str]:
    """Yield a message for each keyword of a valid schema that cannot be validated here."""
    for key, value in schema.items():
        key_path = f"{path}.{key}"
        if key in UNSUPPORTED:
            yield f"{key_path}: is not checked here."
        elif key == "$ref" and not _is_local_reference(str(value), root):
            yield f"{key_path}: must be '#' or name one of the schema's own $defs."
        elif key == "pattern" and _matcher(str(value)) is None:
            yield f"{key_path}: cannot be matched in linear time."
        for name, inner in _subschemas(key, value):
            if isinstance(inner, dict):
                yield from _unsupported_keywords(inner, f"{key_path}{name}", root)


def _subschemas(key: str, value: object) -> Iterable[tuple[str, object]]:
    """Return the paths and schemas in the value of a keyword."""
    if key in SINGLE_SCHEMA:
        return [("", value)]
    if key in SCHEMA_LISTS and isinstance(value, list):
        return [(f".{index}", inner) for index, inner in enumerate(value)]
    if key in SCHEMA_MAPS and isinstance(value, dict):
        return [(f".{name}", inner) for name, inner in value.items()]
    return []


def _is_local_reference(reference: str, root: Schema) -> bool:
    match = REFERENCE.fullmatch(reference)
    if match is None or match[1] is None:
        return match is not None
    definitions = root.get(match[1])
    return isinstance(definitions, dict) and match[2] in definitions


def count_patterns(part: object) -> int:
    """Return the number of patterns in a schema or a part of one."""
    if isinstance(part, list):
        return sum(map(count_patterns, part))
    if not isinstance(part, dict):
        return 0
    return isinstance(part.get("pattern"), str) + sum(map(count_patterns, part.values()))


@lru_cache(maxsize=MAX_CACHED_PATTERNS)
def _matcher(pattern: str) -> SchemaValidator | None:
    """Compile a pattern with Rust's engine. Return None if it is invalid or uses look-around or back-references."""
    work = _work.get(None)
    if work is not None:
        work.spend(COMPILE_WORK)
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return None


# --- data -------------------------------------------------------------------------------------------------------------


def validation_errors(schema: Schema, data: Mapping[str, object], budget: WorkBudget | None = None) -> list[str]:
    """Return the errors in the data, for the model to correct; an empty list if the data is valid.

    ``schema`` must have passed ``schema_problem``. At most ``MAX_SHOWN_ERRORS`` errors are returned.
    """
    if len(to_json(data)) > MAX_DATA:
        return [f"has more than {MAX_DATA} bytes as JSON"]
    token = _work.set(budget or WorkBudget())
    try:
        errors = list(islice(_Bounded(schema, registry=Registry()).iter_errors(data), MAX_SHOWN_ERRORS))
    except (_TooMuchWork, OverflowError, RecursionError):
        return ["takes too much work to check"]
    finally:
        _work.reset(token)
    return [_error_text(error) for error in errors]


def _error_text(error: ValidationError) -> str:
    path = ".".join(map(str, error.absolute_path))
    is_missing = error.validator == "contains"
    message = _clip(f"no item matches {to_json(error.validator_value).decode()}" if is_missing else error.message)
    return f"'{path}': {message}" if path else message


def _clip(message: str) -> str:
    """Return both ends of a long message, because it begins with the data and ends with the reason."""
    half = MAX_SHOWN_CHARACTERS // 2
    return message if len(message) <= MAX_SHOWN_CHARACTERS else f"{message[:half]}…{message[-half:]}"


def _keywords(schema: Schema) -> Iterable[tuple[str, object]]:
    """Return the keywords of a subschema, and spend one unit. jsonschema calls this for every subschema it visits."""
    _work.get().spend(1)
    return schema.items()


def _metered(keyword: str, check: Check) -> Check:
    """Wrap a check so that it spends work units before it runs, and again for each error that it yields."""

    def metered(
        validator: Draft202012Validator, value: object, data: object, schema: Schema
    ) -> Iterator[ValidationError]:
        work = _work.get()
        work.spend(_cost(keyword, value, data))
        for error in check(validator, value, data, schema) or ():
            work.spend(1 + len(error.message) / 100)
            yield error

    return metered


def _cost(keyword: str, value: object, data: object) -> float:
    """Return the work units of a check by the sizes of the keyword's value and the data.

    jsonschema never visits a schema that is ``false`` but puts the whole data into its error, so it is priced here.
    """
    members = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else [value]
    has_parts = isinstance(data, list | dict)
    cost = len(members) / 10
    if isinstance(data, list | dict | str):
        cost += len(data) / (10 if has_parts else 1_000)
    full_scans = sum(member is False for member in members)
    if has_parts and keyword in DEEP_KEYWORDS:
        full_scans += len(members)
    return cost + full_scans * (1 + len(repr(data)) / 100) if full_scans else cost


def _pattern(_: Draft202012Validator, pattern: object, data: object, __: Schema) -> Iterator[ValidationError]:
    matcher = _matcher(str(pattern))
    if isinstance(data, str) and not (matcher and matcher.isinstance_python(data)):
        yield ValidationError(f"{data!r} does not match {pattern!r}")


def _unique(_: Draft202012Validator, unique: object, data: object, __: Schema) -> Iterator[ValidationError]:
    """Compare the items by their JSON texts, because comparing them in pairs takes quadratic time."""
    if unique and isinstance(data, list) and len({json.dumps(item, sort_keys=True) for item in data}) < len(data):
        yield ValidationError("has the same item twice")


_CHECKS: Mapping[str, Check] = {**Draft202012Validator.VALIDATORS, "pattern": _pattern, "uniqueItems": _unique}
_Bounded = create(
    Draft202012Validator.META_SCHEMA,
    {keyword: _metered(keyword, check) for keyword, check in _CHECKS.items()},
    applicable_validators=_keywords,
)
