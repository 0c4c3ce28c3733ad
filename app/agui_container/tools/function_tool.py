"""What a function returns as the content of a tool message: text, or content parts.

Rule: parts go to the client and the model unchanged; whatever is neither text nor parts becomes JSON text.

A Python function as a tool. ``@tool`` in ``decorator.py`` makes these of a function's own type hints.

Rules: a plain function runs in a thread, so it may block; an ``async`` one runs on the event loop and may not.
Arguments with wrong or missing names never reach the function: the model is told and can correct itself.

The arguments of a function, as a model sees them and as the function gets them.

Rule: everything is decided when the tool is made. A function that no schema can describe is refused then, in one
sentence; a call only validates. Fields of the pydantic model have made-up names and the real ones as aliases, so that
arguments may be called ``copy`` or ``_id``.

``@tool``: a Python function as a tool, with nothing to write twice.

Name, description and JSON Schema come from the function's name, docstring and type hints.
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
from agui_container.tools.threads import run_in_thread

PARTS = (TextPart, ImagePart, AudioPart, VideoPart, DocumentPart)


def content_of(result: object) -> ToolContent:
    """The content for a result. A list that has parts in it may hold strings besides; they become text parts."""
    if isinstance(result, str):
        return result
    if isinstance(result, PARTS):
        return [result]
    if isinstance(result, list | tuple) and any(isinstance(item, PARTS) for item in result):
        return [_part(item) for item in result]
    return to_json(result, inf_nan_mode="strings").decode()


def _part(item: object) -> ContentPart:
    return item if isinstance(item, PARTS) else TextPart(text=item if isinstance(item, str) else str(content_of(item)))


P = ParamSpec("P")
R = TypeVar("R")

Check = Callable[[Mapping[str, object]], Mapping[str, object]]


def skip_check(arguments: Mapping[str, object]) -> Mapping[str, object]:
    """The arguments as they are: the function looks for itself."""
    return arguments


class FunctionTool(Struct, Generic[P, R], frozen=True):
    """Implements ``ports.Tool`` with a function that takes the arguments as keywords.

    Attributes:
        parameters: JSON Schema of the arguments, as the model sees it.
        function: plain or ``async``. If it has a parameter named ``ctx`` it is given the ``RunContext``. It gives text,
            content parts, or anything else, which goes back to the model as JSON text, and raises ``ToolError`` for
            what the model may read.
        timeout: seconds after which the call is given up; None waits as long as the run may last.
        check: makes what the function takes of what the model sent, or raises ``ToolError``.
        previewer: plain or ``async``; takes the same arguments and gives a text that shows the effect of a call to
            the person who is asked to approve it.
    """

    name: str
    description: str
    parameters: Mapping[str, object]
    function: Callable[P, R]
    timeout: float | None = None
    check: Check = skip_check
    previewer: Callable[..., object] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, as Python code does."""
        return self.function(*args, **kwargs)

    @property
    def spec(self) -> ToolSpec:
        """Name, description and JSON Schema of the arguments."""
        return ToolSpec(name=self.name, description=self.description, parameters=dict(self.parameters))

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> ToolContent:
        """Check the arguments, call the function, and give its result as text or parts."""
        call = self._bound(self.function, self.check(arguments), ctx)
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                result = await self._result(self.function, call)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ToolError(f"{self.name} did not answer within {self.timeout:g} seconds.") from error
        return content_of(result)

    async def preview(self, arguments: Mapping[str, object], ctx: RunContext) -> str | None:
        """The previewer's text; None without one. Raises ``ToolError`` for arguments that the function cannot take."""
        if self.previewer is None:
            return None
        shown = await self._result(self.previewer, self._bound(self.previewer, self.check(arguments), ctx))
        return None if shown is None else str(shown)

    def _bound(
        self, function: Callable[..., object], arguments: Mapping[str, object], ctx: RunContext
    ) -> Callable[[], object]:
        signature = inspect.signature(function)
        given: dict[str, object] = {"ctx": ctx} if "ctx" in signature.parameters else {}
        if "ctx" in arguments and given:
            raise ToolError(f"{self.name}: got an unexpected argument 'ctx'.")
        try:
            bound = signature.bind(**arguments, **given)
        except TypeError as error:
            raise ToolError(f"{self.name}: {error}.") from error
        return partial(function, *bound.args, **bound.kwargs)

    async def _result(self, function: Callable[..., object], call: Callable[[], object]) -> object:
        result = call() if inspect.iscoroutinefunction(function) else await run_in_thread(call)
        # A plain function may hand back a coroutine (a lambda around an async one does).
        return await result if inspect.isawaitable(result) else result


INJECTED = "ctx"
"""The parameter that is given the ``RunContext``: no model sees or sets it."""

NAMED = {"properties", "$defs"}
DATA = {"default", "const", "enum", "examples", "required"}
"""Keywords whose values are schemas by name, and those whose values are no schemas."""

Parameter = inspect.Parameter


class ToolDefinitionError(TypeError):
    """A function cannot be a tool. The text is for its author, when the module is imported."""


class ArgumentSchema:
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
    return "; ".join(_error_text(".".join(map(str, each["loc"])), each["type"], each["msg"]) for each in details) + "."


def _error_text(where: str, kind: str, message: str) -> str:
    if kind == "missing":
        return f"'{where}' is missing"
    if kind == "extra_forbidden":
        return f"'{where}' is not an argument"
    return f"'{where}': {message}"


FIELDS = (":", "@")
"""How the only line of a docstring begins that is not what the function does, but a field such as ``:param a: …``."""


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
    """Make a tool of a plain or ``async`` function; it can still be called like the function.

    Args:
        function: every parameter but ``ctx`` has a type hint. ``ctx`` is given the ``RunContext``.
        name: the tool's name if it is not the function's.
        description: what the tool does, if it is not in the docstring (Google, NumPy or Sphinx style).
        timeout: seconds after which a call is given up; None waits as long as the run may last.
        preview: a function of the same parameters that gives a text: the effect of a call, for the person who is asked
            to approve it. It must change nothing.

    Raises:
        ToolDefinitionError: the function takes what a model cannot give.
    """

    def make(function: Callable[P, R]) -> FunctionTool[P, R]:
        chosen = name or str(getattr(function, "__name__", function))
        summary, parameters = _documented(function)
        arguments = ArgumentSchema(function, chosen, parameters)
        return FunctionTool(
            chosen, description or summary or chosen, arguments.schema, function, timeout, arguments.check, preview
        )

    return make if function is None else make(function)


def _documented(function: Callable[..., object]) -> tuple[str, dict[str, str]]:
    """What the docstring says of the function and of each parameter."""
    text = inspect.getdoc(function) or ""
    if "\n" not in text and not text.startswith(FIELDS):
        return text, {}
    from docstring_parser import ParseError, parse  # noqa: PLC0415 - not for a plain line

    try:
        parsed = parse(text)
    except ParseError:
        return text, {}
    parameters = {each.arg_name: each.description for each in parsed.params if each.description}
    return parsed.description or "", {name: " ".join(text.split()) for name, text in parameters.items()}
