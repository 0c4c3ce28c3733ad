"""Errors of a validation as one sentence for the sender: the path of each field, and the reason.

Rules:

- A path consists of what the sender wrote. Pydantic's location of an error also has names of union members, such as
  ``user`` in ``messages.0.user.id``. Only the schema tells a member from a field of the same name.
- If a value fits no member of a union, only the errors of those members that it resembles are reported. A list with a
  wrong part is not reported as "should be a valid string", too.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from agui_container.protocol.errors import AppError, ErrorCode, clip_message

SHOWN_ERRORS = 5
"""Maximum number of field errors in one message."""

UNIONS = frozenset({"union", "tagged-union"})
NO_OBJECT = frozenset({"model_type", "model_attributes_type", "dict_type"})

Location = tuple[int | str, ...]
Schema = Mapping[str, Any]


def field_errors(error: ValidationError, shape: TypeAdapter[Any], prefix: str = "") -> AppError:
    """Return a VALIDATION_ERROR that names the fields below ``prefix``. ``shape`` is the validator that has failed."""
    errors = located_messages(error, shape)
    lines = [
        clip_message(f"{'.'.join(filter(None, (prefix, path))) or 'body'}: {message}")
        for path, message in errors[:SHOWN_ERRORS]
    ]
    if len(errors) > SHOWN_ERRORS:
        lines.append(f"and {len(errors) - SHOWN_ERRORS} more")
    return AppError(ErrorCode.VALIDATION_ERROR, "; ".join(lines))


def located_messages(error: ValidationError, shape: TypeAdapter[Any]) -> list[tuple[str, str]]:
    errors = error.errors(include_url=False, include_input=False)
    masks = [_field_mask(shape.core_schema, each["loc"]) or [True] * len(each["loc"]) for each in errors]
    unions = {
        each["loc"][:at]
        for each, mask in zip(errors, masks, strict=True)
        for at, is_field in enumerate(mask[:-1])
        if not is_field
    }
    """Locations of the unions that have a member with an error inside the value."""
    return [
        (
            ".".join(str(part) for part, is_field in zip(each["loc"], mask, strict=True) if is_field),
            _message(each),
        )
        for each, mask in zip(errors, masks, strict=True)
        if not mask or mask[-1] or each["loc"][:-1] not in unions
    ]


def _message(error: ErrorDetails) -> str:
    if error["type"] in NO_OBJECT:
        return "Input should be an object"
    match error.get("ctx"):
        case {"discriminator": name, "expected_tags": known}:
            return f"{name} should be one of {known}"
        case {"discriminator": name}:
            return f"{name} is required"
    return error["msg"]


def _field_mask(schema: Schema, location: Location) -> list[bool] | None:
    """For each part of a location: True for a field or index, False for a name of a union's member. None if unknown."""
    if not location:
        return []
    if "schema" in schema:
        return _field_mask(schema["schema"], location)
    for child in _children(schema, location[0]):
        mask = _field_mask(child, location[1:])
        if mask is not None:
            return [schema["type"] not in UNIONS, *mask]
    return None


def _children(schema: Schema, part: int | str) -> list[Schema]:
    children: list[Schema] = []
    match schema["type"]:
        case "tagged-union" if part in schema["choices"]:
            children = [schema["choices"][part]]
        case "union":
            children = [each[0] if isinstance(each, tuple) else each for each in schema["choices"]]
        case "model-fields":
            fields = schema["fields"].items()
            children = [each["schema"] for name, each in fields if part in {name, each.get("validation_alias")}]
        case "list":
            children = [schema["items_schema"]]
        case "tuple":
            children = schema["items_schema"]
        case "dict":
            children = [schema["values_schema"]]
    return children
