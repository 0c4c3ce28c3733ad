"""Python functions as tools. ``@tool`` makes a ``FunctionTool`` from a function's name, docstring and type hints.

Rules:

- A plain function runs in a thread (``threads``), so it may block. An ``async`` function runs on the event loop and
  must not block.
- ``@tool`` checks the whole definition. A function that no JSON Schema can describe raises ``ToolDefinitionError``.
- A call validates its arguments first. Wrong or missing arguments raise a ``ToolError`` that the model can correct.
- Text and content parts of a result reach the client and the model unchanged. Any other result becomes JSON text.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Generic, ParamSpec, TypeVar, overload

from ag_ui.core import ContentPart, TextPart
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct

from agui_container.ports import RunContext, ToolContent, ToolError
from agui_container.protocol.strict_json import json_text
from agui_container.tools.threads import run_in_thread
from agui_core.content import PARTS
from agui_core.function_schema import ArgumentError, ArgumentSchema, parse_docstring

INJECTED = "ctx"
"""Name of the parameter that receives the ``RunContext``. Models neither see nor set it."""


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
        return self.function(*args, **kwargs)

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description=self.description, parameters=dict(self.parameters))

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> ToolContent:
        call = self._bind(self.function, self.check(arguments), ctx)
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                result = await self._invoke(self.function, call)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ToolError(f"{self.name} did not answer within {self.timeout:g} seconds.") from error
        return content_of(result)

    async def preview(self, arguments: Mapping[str, object], ctx: RunContext) -> str | None:
        """Return None if there is no previewer. Raises ``ToolError``."""
        if self.previewer is None:
            return None
        text = await self._invoke(self.previewer, self._bind(self.previewer, self.check(arguments), ctx))
        return None if text is None else str(text)

    def check_strictly(self, arguments: Mapping[str, object]) -> None:
        self.strict_check(arguments)

    def _bind(
        self, function: Callable[..., object], arguments: Mapping[str, object], ctx: RunContext
    ) -> Callable[[], object]:
        signature = inspect.signature(function)
        injected: dict[str, object] = {INJECTED: ctx} if INJECTED in signature.parameters else {}
        if INJECTED in arguments and injected:
            raise ToolError(f"{self.name}: got an unexpected argument '{INJECTED}'.")
        try:
            bound = signature.bind(**arguments, **injected)
        except TypeError as error:
            raise ToolError(f"{self.name}: {error}.") from error
        return partial(function, *bound.args, **bound.kwargs)

    async def _invoke(self, function: Callable[..., object], call: Callable[[], object]) -> object:
        result = call() if inspect.iscoroutinefunction(function) else await run_in_thread(call)
        # A plain function may return a coroutine, for example a lambda around an async function.
        return await result if inspect.isawaitable(result) else result


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
        summary, parameters = parse_docstring(function)
        arguments = ArgumentSchema(function, tool_name, parameters, injected={INJECTED})
        return FunctionTool(
            tool_name,
            description or summary or tool_name,
            arguments.schema,
            function,
            timeout,
            partial(_checked, tool_name, arguments.check),
            preview,
            partial(_checked, tool_name, arguments.check_strictly),
        )

    return make if function is None else make(function)


def _checked(name: str, check: ArgumentCheck, arguments: Mapping[str, object]) -> Mapping[str, object]:
    try:
        return check(arguments)
    except ArgumentError as error:
        raise ToolError(f"{name}: {error}") from error
