"""JSON Schemas as tables: a row for each field."""

import json
from collections.abc import Iterable, Mapping

from website.tables import code, table

Schema = Mapping[str, object]
"""One schema as ``json.loads`` gives it."""

BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}


def member(schema: Schema, name: str) -> Schema:
    """Return a schema inside another one; empty if there is none."""
    value = schema.get(name)
    return value if isinstance(value, dict) else {}


def members(schema: Schema, name: str) -> list[Schema]:
    """Return the schemas of a list inside another schema."""
    value = schema.get(name)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def type_text(schema: Schema, page: str = "") -> str:
    """Return the type of a value in words, with links to the sections of ``page`` for named types."""
    if isinstance(reference := schema.get("$ref"), str):
        name = reference.rpartition("/")[2]
        return f"[{name}]({page}#{name.lower()})"
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list):
        return " or ".join(code(quoted(value)) for value in values)
    if options := members(schema, "anyOf") or members(schema, "oneOf"):
        return " or ".join(dict.fromkeys(type_text(option, page) for option in options))
    if schema.get("type") == "array":
        return f"list of {type_text(member(schema, 'items'), page)}"
    if values := member(schema, "additionalProperties"):
        return f"object of {type_text(values, page)}"
    return with_bounds(schema)


def inlined(schema: Schema) -> Schema:
    """Return a schema with its own definitions in place of the references to them."""
    definitions = member(schema, "$defs")

    def resolve(value: object) -> object:
        if isinstance(value, list):
            return [resolve(each) for each in value]
        if not isinstance(value, dict):
            return value
        if isinstance(reference := value.get("$ref"), str):
            return resolve(member(definitions, reference.rpartition("/")[2]))
        return {name: resolve(each) for name, each in value.items() if name != "$defs"}

    resolved = resolve(schema)
    return resolved if isinstance(resolved, dict) else {}


def with_bounds(schema: Schema) -> str:
    """Return a plain type and its bounds."""
    kind = schema.get("type", "any value")
    name = " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
    bounds = [text.format(schema[key]) for key, text in BOUNDS.items() if key in schema]
    return ", ".join([name, *bounds])


def quoted(value: object) -> str:
    """Return a value as JSON shows it."""
    return json.dumps(value, ensure_ascii=False)


def default_text(schema: Schema) -> str:
    """Return the default of a field, or nothing."""
    return code(quoted(schema["default"])) if "default" in schema and schema["default"] is not None else ""


def field_table(schema: Schema, page: str = "", without: Iterable[str] = ()) -> str:
    """Return the fields of an object, required ones marked."""
    required = schema.get("required")
    needed = set(required) if isinstance(required, list) else set()
    rows = [
        [
            code(name),
            type_text(field, page),
            "required" if name in needed else default_text(field),
            str(field.get("description", "")),
        ]
        for name, field in member(schema, "properties").items()
        if isinstance(field, dict) and name not in set(without)
    ]
    with_meaning = any(row[3] for row in rows)
    head = ["field", "type", "default", "meaning"]
    return table(head if with_meaning else head[:3], rows if with_meaning else [row[:3] for row in rows])
