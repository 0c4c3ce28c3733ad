"""The arguments of a function, as a model sees them and as the function gets them.

Rule: everything is decided when the tool is made. A function that no schema can describe is refused then, in one
sentence; a call only validates. Fields of the pydantic model have made-up names and the real ones as aliases, so that
arguments may be called ``copy`` or ``_id``.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from app.ports import ToolError

INJECTED = "ctx"
"""The parameter that is given the ``RunContext``: no model sees or sets it."""

NAMED = {"properties", "$defs"}
DATA = {"default", "const", "enum", "examples", "required"}
"""Keywords whose values are schemas by name, and those whose values are no schemas."""

Parameter = inspect.Parameter


class ToolDefinitionError(TypeError):
    """A function cannot be a tool. The text is for its author, when the module is imported."""


class Arguments:
    """What a function takes besides ``ctx``.

    Attributes:
        schema: JSON Schema of the arguments.
    """

    def __init__(self, function: Callable[..., object], name: str, descriptions: Mapping[str, str]) -> None:
        self._name = name
        fields = {
            parameter.name: _field(parameter, hint, name, descriptions.get(parameter.name))
            for parameter, hint in _parameters(function, name)
        }
        self._names = {f"argument_{at}": argument for at, argument in enumerate(fields)}
        try:
            self._model = _model({field: fields[argument] for field, argument in self._names.items()})
            schema = self._model.model_json_schema(schema_generator=_Schema)
        except (PydanticUserError, PydanticUndefinedAnnotation) as error:
            reason = str(error).splitlines()[0]
            raise ToolDefinitionError(f"'{name}' has an argument that no schema can describe: {reason}") from error
        self.schema: dict[str, object] = _untitled(schema)

    def check(self, given: Mapping[str, object]) -> dict[str, object]:
        """The arguments as the function wants them; those that are left out stay out.

        Raises:
            ToolError: naming each argument that is wrong, for the model to correct.
        """
        try:
            checked = self._model.model_validate(given)
        except ValidationError as error:
            raise ToolError(f"{self._name}: {_sentence(error)}") from error
        # Not model_dump: an argument that is a model of its own reaches the function as one.
        return {
            argument: getattr(checked, field)
            for field, argument in self._names.items()
            if field in checked.model_fields_set
        }


class _Schema(GenerateJsonSchema):
    """Defaults that JSON cannot hold are left out in silence: they are the function's own affair."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as the base declares it


def _parameters(function: Callable[..., object], name: str) -> list[tuple[Parameter, Any]]:
    if not inspect.isroutine(function):
        raise ToolDefinitionError(f"'{name}' is {type(function).__name__}: a tool is a function or a bound method.")
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ToolDefinitionError(f"'{name}' has a type that cannot be found: {error}.") from error
    parameters = inspect.signature(function).parameters.values()
    return [(_named(each, name), hints.get(each.name)) for each in parameters if each.name != INJECTED]


def _named(parameter: Parameter, name: str) -> Parameter:
    if parameter.kind in {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD, Parameter.POSITIONAL_ONLY}:
        raise ToolDefinitionError(f"'{name}' takes '{parameter}', but a model gives each argument by its name.")
    return parameter


def _field(parameter: Parameter, hint: object, name: str, description: str | None) -> tuple[Any, FieldInfo]:
    if hint is None:
        raise ToolDefinitionError(f"'{name}' does not say the type of its argument '{parameter.name}'.")
    if isinstance(parameter.default, FieldInfo):
        text = f"'{name}' has a Field as the default of '{parameter.name}': write Annotated[type, Field(…)] instead."
        raise ToolDefinitionError(text)
    extras = {} if description is None or _describes_itself(hint) else {"description": description}
    default = ... if parameter.default is Parameter.empty else parameter.default
    return hint, Field(default, alias=parameter.name, **extras)  # type: ignore[call-overload]


def _describes_itself(hint: object) -> bool:
    metadata: tuple[object, ...] = getattr(hint, "__metadata__", ())
    return any(isinstance(each, FieldInfo) and each.description for each in metadata)


def _model(fields: Mapping[str, tuple[Any, FieldInfo]]) -> type[BaseModel]:
    definitions: dict[str, Any] = dict(fields)
    return create_model("Arguments", __config__=ConfigDict(extra="forbid"), **definitions)


def _untitled(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without the titles that pydantic makes of names: they tell a model nothing."""
    return {key: _inner(key, value) for key, value in schema.items() if key != "title"}


def _inner(key: str, value: object) -> object:
    if key in DATA:
        return value
    if key in NAMED and isinstance(value, dict):
        return {name: _untitled(schema) for name, schema in value.items()}
    if isinstance(value, list):
        return [_inner("", item) for item in value]
    return _untitled(value) if isinstance(value, dict) else value


def _sentence(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(_said(".".join(map(str, each["loc"])), each["type"], each["msg"]) for each in details) + "."


def _said(where: str, kind: str, message: str) -> str:
    if kind == "missing":
        return f"'{where}' is missing"
    if kind == "extra_forbidden":
        return f"'{where}' is not an argument"
    return f"'{where}': {message}"
