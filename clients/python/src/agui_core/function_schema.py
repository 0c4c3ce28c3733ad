"""The parameters of a Python function as a JSON Schema, for tools of a server and of a client.

Rules:

- A function that no JSON Schema can describe raises ``ToolDefinitionError`` when the tool is made.
- Arguments are validated before the function is called. ``ArgumentError`` names each wrong one for the model.

Source of schemas: JSON Schema as pydantic generates it.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_json

Parameter = inspect.Parameter

SCHEMAS_BY_NAME = {"properties", "$defs"}
"""JSON Schema keywords whose values map names to schemas."""

PLAIN_VALUES = {"default", "const", "enum", "examples", "required"}
"""JSON Schema keywords whose values are not schemas."""

FIELD_MARKERS = (":", "@")
"""First characters of a one-line docstring that is a field such as ``:param a: …`` and not a description."""


class ToolDefinitionError(TypeError):
    """A function cannot be a tool. The text is for the author of the function, when its module is imported."""


class ArgumentError(ValueError):
    """Arguments of a call are missing or wrong. The text is for the model."""


class ArgumentSchema:
    """Schema and validator of the parameters of a function, without the ``injected`` ones.

    The fields of the pydantic model have generated names, and the parameters' names are aliases, because a parameter
    may have a name that pydantic does not allow, such as ``copy`` or ``_id``.

    Attributes:
        schema: JSON Schema of the arguments.

    Raises:
        ToolDefinitionError: no schema can describe the function.
    """

    def __init__(
        self,
        function: Callable[..., object],
        name: str,
        descriptions: Mapping[str, str],
        injected: Collection[str] = (),
    ) -> None:
        fields = {
            parameter.name: _field(parameter, hint, name, descriptions.get(parameter.name))
            for parameter, hint in _parameters(function, name)
            if parameter.name not in injected
        }
        self._names = {f"argument_{index}": argument for index, argument in enumerate(fields)}
        try:
            self._model = _model({field: fields[argument] for field, argument in self._names.items()})
            schema = self._model.model_json_schema(schema_generator=_Schema)
        except (PydanticUserError, PydanticUndefinedAnnotation) as error:
            reason = str(error).splitlines()[0]
            raise ToolDefinitionError(f"'{name}' has an argument that no schema can describe: {reason}") from error
        self.schema: dict[str, object] = _without_titles(schema)

    def check(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Convert arguments; absent ones stay absent. Raises ``ArgumentError``."""
        return self._values(lambda: self._model.model_validate(arguments))

    def check_strictly(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return the same without conversions: JSON that is a boolean or text is no number."""
        return self._values(lambda: self._model.model_validate_json(to_json(arguments), strict=True))

    def _values(self, validate: Callable[[], BaseModel]) -> dict[str, object]:
        try:
            validated = validate()
        except ValidationError as error:
            raise ArgumentError(_validation_text(error)) from error
        # Not model_dump, because an argument whose type is a model must reach the function as that model.
        return {
            argument: getattr(validated, field)
            for field, argument in self._names.items()
            if field in validated.model_fields_set
        }


def parse_docstring(function: Callable[..., object]) -> tuple[str, dict[str, str]]:
    """Return the description of a function and those of its parameters: in the style of Google, NumPy or Sphinx."""
    text = inspect.getdoc(function) or ""
    if "\n" not in text and not text.startswith(FIELD_MARKERS):
        return text, {}
    from docstring_parser import ParseError, parse  # noqa: PLC0415 - not needed for one line

    try:
        parsed = parse(text)
    except ParseError:
        return text, {}
    parameters = {each.arg_name: each.description for each in parsed.params if each.description}
    return parsed.description or "", {name: " ".join(text.split()) for name, text in parameters.items()}


class _Schema(GenerateJsonSchema):
    """Schema generator that omits defaults without a JSON form, without a warning."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as in the base class


def _parameters(function: Callable[..., object], name: str) -> list[tuple[Parameter, Any]]:
    if not inspect.isroutine(function):
        raise ToolDefinitionError(f"'{name}' is {type(function).__name__}: a tool is a function or a bound method.")
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ToolDefinitionError(f"'{name}' has a type that cannot be found: {error}.") from error
    parameters = inspect.signature(function).parameters.values()
    return [(each, hints.get(each.name)) for each in parameters]


def _field(parameter: Parameter, hint: object, name: str, description: str | None) -> tuple[Any, FieldInfo]:
    if parameter.kind in {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD, Parameter.POSITIONAL_ONLY}:
        raise ToolDefinitionError(f"'{name}' takes '{parameter}', but a model gives each argument by its name.")
    if hint is None:
        raise ToolDefinitionError(f"'{name}' does not say the type of its argument '{parameter.name}'.")
    if isinstance(parameter.default, FieldInfo):
        text = f"'{name}' has a Field as the default of '{parameter.name}': write Annotated[type, Field(…)] instead."
        raise ToolDefinitionError(text)
    extras = {} if description is None or _has_description(hint) else {"description": description}
    default = ... if parameter.default is Parameter.empty else parameter.default
    return hint, Field(default, alias=parameter.name, **extras)  # type: ignore[call-overload]


def _has_description(hint: object) -> bool:
    metadata: tuple[object, ...] = getattr(hint, "__metadata__", ())
    return any(isinstance(each, FieldInfo) and each.description for each in metadata)


def _model(fields: Mapping[str, tuple[Any, FieldInfo]]) -> type[BaseModel]:
    definitions: dict[str, Any] = dict(fields)
    return create_model("Arguments", __config__=ConfigDict(extra="forbid"), **definitions)


def _without_titles(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema without pydantic's generated titles, which only repeat the names."""
    return {key: _value_without_titles(key, value) for key, value in schema.items() if key != "title"}


def _value_without_titles(key: str, value: object) -> object:
    if key in PLAIN_VALUES:
        return value
    if key in SCHEMAS_BY_NAME and isinstance(value, dict):
        return {name: _without_titles(schema) for name, schema in value.items()}
    if isinstance(value, list):
        return [_value_without_titles("", item) for item in value]
    return _without_titles(value) if isinstance(value, dict) else value


def _validation_text(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(_error_text(".".join(map(str, each["loc"])), each["type"], each["msg"]) for each in details) + "."


def _error_text(argument: str, kind: str, message: str) -> str:
    if kind == "missing":
        return f"'{argument}' is missing"
    if kind == "extra_forbidden":
        return f"'{argument}' is not an argument"
    return f"'{argument}': {message}"
