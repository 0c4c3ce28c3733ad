"""The tools that ``AGUI_TOOLS=module:attribute`` names.

Rule: whatever is wrong is found at the start, and said in one sentence that names what was found and what is accepted.
"""

import inspect
from typing import TypeGuard

from agui_container.imports import BadReference, import_string
from agui_container.ports import Tool

ACCEPTED = "Accepted are a function with @tool, an object with 'spec' and 'call', and a list of these."


class ToolLoadError(ValueError):
    """There are no tools where some were named. The text is for the operator, at the start."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"AGUI_TOOLS: {reason}")


def load_tools(reference: str) -> tuple[Tool, ...]:
    """Import the module and find the attribute: a tool, or a list of tools with different names.

    Raises:
        ToolLoadError: if there is no such thing, or it holds what is no tool.
    """
    try:
        found = import_string(reference)
    except BadReference as error:
        raise ToolLoadError(str(error)) from error
    name = reference.strip()
    if not isinstance(found, list | tuple):
        return (_tool(found, name),)
    tools = tuple(_tool(item, f"{name}[{at}]") for at, item in enumerate(found))
    names = [tool.spec.name for tool in tools]
    for repeated in (each for at, each in enumerate(names) if each in names[:at]):
        raise ToolLoadError(f"'{name}' has two tools that are named '{repeated}'.")
    return tools


def _tool(found: object, name: str) -> Tool:
    if not _is_tool(found):
        hint = "a function without @tool" if inspect.isroutine(found) else f"of type {type(found).__name__}"
        raise ToolLoadError(f"'{name}' is {hint}. {ACCEPTED}")
    return found


def _is_tool(found: object) -> TypeGuard[Tool]:
    return not inspect.isclass(found) and hasattr(found, "spec") and callable(getattr(found, "call", None))
