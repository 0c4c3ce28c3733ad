"""Python functions as tools. ``@tool`` makes a ``FunctionTool`` from a function's name, docstring and type hints.

Rules:

- A plain function runs in a thread (``threads``), so it may block. An ``async`` function runs on the event loop and
  must not block.
- ``@tool`` checks the whole definition. A function that no JSON Schema can describe raises ``ToolDefinitionError``.
- A call validates its arguments first. Wrong or missing arguments raise a ``ToolError`` that the model can correct.
- Text and content parts of a result reach the client and the model unchanged. Any other result becomes JSON text.

Source of schemas: JSON Schema as pydantic generates it.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar, get_type_hints, overload

from ag_ui.core import AudioPart, ContentPart, DocumentPart, ImagePart, TextPart, VideoPart
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_json

from agui_container.ports import RunContext, ToolContent, ToolError
from agui_container.runtime.surrogates import json_text
from agui_container.tools.threads import run_in_thread

PARTS = (TextPart, ImagePart, AudioPart, VideoPart, DocumentPart)


def content_of(result: object) -> ToolContent:
    """Return the result of a function as text or content parts. Strings in a list with parts become text parts."""
    if isinstance(result, str):
        return result
    if isinstance(result, PARTS):
        return [result]
    if isinstance(result, list | tuple) and any(isinstance(item, PARTS) for item in result):
        return [_part(item) for item in result]
    return json_text(result)


def _part(item: object) -> ContentPart:
    return item if isinstance(item, PARTS) else TextPart(text=item if isinstance(item, str) else str(content_of(item)))


P = ParamSpec("P")
R = TypeVar("R")

ArgumentCheck = Callable[[Mapping[str, object]], Mapping[str, object]]


def skip_check(arguments: Mapping[str, object]) -> Mapping[str, object]:
    """Return the arguments unchanged, for functions that check their arguments themselves."""
    return arguments


class FunctionTool(Struct, Generic[P, R], frozen=True):
    """A function as a tool. Implements ``ports.Tool``. Arguments are passed by keyword.

    Attributes:
        name: name of the tool.
        description: purpose of the tool, for the model.
        parameters: JSON Schema of the arguments, for the model.
        function: plain or ``async``. A parameter named ``ctx`` receives the ``RunContext``. The function returns text,
            content parts, or any value that JSON can represent, and raises ``ToolError`` with a text for the model.
        timeout: seconds after which a call is cancelled; None means no limit but the run's.
        check: converts the model's arguments to the function's, or raises ``ToolError``.
        strict_check: raises ``ToolError`` for arguments whose types are not exactly those of the function.
        previewer: plain or ``async``, with the same parameters. Returns a text that describes the effect of a call to
            the person who approves it.
    """

    name: str
    description: str
    parameters: Mapping[str, object]
    function: Callable[P, R]
    timeout: float | None = None
    check: ArgumentCheck = skip_check
    previewer: Callable[..., object] | None = None
    strict_check: ArgumentCheck = skip_check

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function directly."""
        return self.function(*args, **kwargs)

    @property
    def spec(self) -> ToolSpec:
        """Name, description and JSON Schema of the tool."""
        return ToolSpec(name=self.name, description=self.description, parameters=dict(self.parameters))

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> ToolContent:
        """Check the arguments, call the function and return its result as text or parts.

        Raises:
            ToolError: the arguments are wrong, the call timed out, or the function raised it.
        """
        call = self._bind(self.function, self.check(arguments), ctx)
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                result = await self._invoke(self.function, call, ctx)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ToolError(f"{self.name} did not answer within {self.timeout:g} seconds.") from error
        return content_of(result)

    async def preview(self, arguments: Mapping[str, object], ctx: RunContext) -> str | None:
        """Return the previewer's text, or None if there is no previewer.

        Raises:
            ToolError: the arguments are wrong.
        """
        if self.previewer is None:
            return None
        text = await self._invoke(self.previewer, self._bind(self.previewer, self.check(arguments), ctx), ctx)
        return None if text is None else str(text)

    def check_strictly(self, arguments: Mapping[str, object]) -> None:
        """Check the arguments without conversions. Raises ``ToolError``."""
        self.strict_check(arguments)

    def _bind(
        self, function: Callable[..., object], arguments: Mapping[str, object], ctx: RunContext
    ) -> Callable[[], object]:
        signature = inspect.signature(function)
        injected: dict[str, object] = {"ctx": ctx} if "ctx" in signature.parameters else {}
        if "ctx" in arguments and injected:
            raise ToolError(f"{self.name}: got an unexpected argument 'ctx'.")
        try:
            bound = signature.bind(**arguments, **injected)
        except TypeError as error:
            raise ToolError(f"{self.name}: {error}.") from error
        return partial(function, *bound.args, **bound.kwargs)

    async def _invoke(self, function: Callable[..., object], call: Callable[[], object], ctx: RunContext) -> object:
        is_async = inspect.iscoroutinefunction(function)
        result = call() if is_async else await run_in_thread(call, ctx.caller.identity)
        # A plain function may return a coroutine, for example a lambda around an async function.
        return await result if inspect.isawaitable(result) else result


INJECTED = "ctx"
"""Name of the parameter that receives the ``RunContext``. Models neither see nor set it."""

SCHEMAS_BY_NAME = {"properties", "$defs"}
"""JSON Schema keywords whose values map names to schemas."""

PLAIN_VALUES = {"default", "const", "enum", "examples", "required"}
"""JSON Schema keywords whose values are not schemas."""

Parameter = inspect.Parameter


class ToolDefinitionError(TypeError):
    """A function cannot be a tool. The text is for the author of the function, when its module is imported."""


class ArgumentSchema:
    """Schema and validator of the parameters of a function, without ``ctx``.

    The fields of the pydantic model have generated names, and the parameters' names are aliases, because a parameter
    may have a name that pydantic does not allow, such as ``copy`` or ``_id``.

    Attributes:
        schema: JSON Schema of the arguments.

    Raises:
        ToolDefinitionError: no schema can describe the function.
    """

    def __init__(self, function: Callable[..., object], name: str, descriptions: Mapping[str, str]) -> None:
        self._name = name
        fields = {
            parameter.name: _field(parameter, hint, name, descriptions.get(parameter.name))
            for parameter, hint in _parameters(function, name)
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
        """Convert the model's arguments to the types of the function. Absent arguments stay absent.

        Raises:
            ToolError: an argument is wrong. The text names each wrong argument.
        """
        return self._values(lambda: self._model.model_validate(arguments))

    def check_strictly(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return the same without conversions: JSON that is a boolean or text is no number. Raises ``ToolError``."""
        return self._values(lambda: self._model.model_validate_json(to_json(arguments), strict=True))

    def _values(self, validate: Callable[[], BaseModel]) -> dict[str, object]:
        try:
            validated = validate()
        except ValidationError as error:
            raise ToolError(f"{self._name}: {_validation_text(error)}") from error
        # Not model_dump, because an argument whose type is a model must reach the function as that model.
        return {
            argument: getattr(validated, field)
            for field, argument in self._names.items()
            if field in validated.model_fields_set
        }


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
    return [(_passable_by_name(each, name), hints.get(each.name)) for each in parameters if each.name != INJECTED]


def _passable_by_name(parameter: Parameter, name: str) -> Parameter:
    if parameter.kind in {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD, Parameter.POSITIONAL_ONLY}:
        raise ToolDefinitionError(f"'{name}' takes '{parameter}', but a model gives each argument by its name.")
    return parameter


def _field(parameter: Parameter, hint: object, name: str, description: str | None) -> tuple[Any, FieldInfo]:
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


FIELD_MARKERS = (":", "@")
"""First characters of a one-line docstring that is a field such as ``:param a: …`` and not a description."""


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    preview: Callable[..., object] | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    preview: Callable[..., object] | None = None,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool from a plain or ``async`` function. The tool can still be called like the function.

    Args:
        function: every parameter except ``ctx`` needs a type hint. ``ctx`` receives the ``RunContext``.
        name: name of the tool; by default the function's.
        description: purpose of the tool; by default from the docstring (Google, NumPy or Sphinx style).
        timeout: seconds after which a call is cancelled; None means no limit but the run's.
        preview: function with the same parameters that returns a text: the effect of a call, for the person who
            approves it. It must have no side effects.

    Raises:
        ToolDefinitionError: no JSON Schema can describe the parameters.
    """

    def make(function: Callable[P, R]) -> FunctionTool[P, R]:
        tool_name = name or str(getattr(function, "__name__", function))
        summary, parameters = _parse_docstring(function)
        arguments = ArgumentSchema(function, tool_name, parameters)
        return FunctionTool(
            tool_name,
            description or summary or tool_name,
            arguments.schema,
            function,
            timeout,
            arguments.check,
            preview,
            arguments.check_strictly,
        )

    return make if function is None else make(function)


def _parse_docstring(function: Callable[..., object]) -> tuple[str, dict[str, str]]:
    """Return the descriptions of the function and of each parameter in its docstring."""
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
