"""``@tool``: a Python function as a tool, with nothing to write twice.

Name, description and JSON Schema come from the function's name, docstring and type hints.
"""

import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar, overload

from app.tools.arguments import Arguments
from app.tools.function import FunctionTool

P = ParamSpec("P")
R = TypeVar("R")

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
        arguments = Arguments(function, chosen, parameters)
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
