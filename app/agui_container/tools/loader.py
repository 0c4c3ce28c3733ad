"""Loader of the tools that ``AGUI_TOOLS=module:attribute`` names.

Rule: a wrong value stops the server at its start with one sentence that names the object found and the accepted types.
"""

import inspect
from typing import TypeGuard

from agui_container.imports import BadReference, import_string
from agui_container.ports import Tool

ACCEPTED = "Accepted are a function with @tool, an object with 'spec' and 'call', and a list of these."


class ToolLoadError(ValueError):
    """``AGUI_TOOLS`` is invalid. The text is for the operator, at the start of the server."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"AGUI_TOOLS: {reason}")


def load_tools(reference: str) -> tuple[Tool, ...]:
    """Import a tool, or a list of tools with different names. Raises ``ToolLoadError``."""
    try:
        value = import_string(reference)
    except BadReference as error:
        raise ToolLoadError(str(error)) from error
    name = reference.strip()
    if not isinstance(value, list | tuple):
        return (_tool(value, name),)
    tools = tuple(_tool(item, f"{name}[{index}]") for index, item in enumerate(value))
    names = [tool.spec.name for tool in tools]
    for duplicate in (each for index, each in enumerate(names) if each in names[:index]):
        raise ToolLoadError(f"'{name}' has two tools that are named '{duplicate}'.")
    return tools


def _tool(value: object, name: str) -> Tool:
    if not _is_tool(value):
        hint = "a function without @tool" if inspect.isroutine(value) else f"of type {type(value).__name__}"
        raise ToolLoadError(f"'{name}' is {hint}. {ACCEPTED}")
    return value


def _is_tool(value: object) -> TypeGuard[Tool]:
    return not inspect.isclass(value) and hasattr(value, "spec") and callable(getattr(value, "call", None))
