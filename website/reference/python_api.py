"""Public names of the Python packages: signatures and docstrings."""

import enum
import importlib
import inspect
import re
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Literal, Union

from website.tables import code, page

SERVER = ("agui_container", "agui_container.models", "agui_container.tools", "agui_container.testing")
UNIONS = {"UserMessage": "Message", "RunStartedEvent": "Event", "DocumentPart": "ContentPart"}
"""Names of the unions of ``ag_ui.core``, which have lost them, by one of their members."""
SEVERAL = 4
"""Members from which on a union is one of those."""

WIDTH = 90
"""Characters of a signature that stands on one line."""


def python_server() -> str:
    """Return the page of the server's public names."""
    opening = (
        "The public names of `agui_container`, from their docstrings. Every other name is private and may\n"
        "change in any release. [Agents](../agents.md) and [Embedding](../embedding.md) show them in use."
    )
    return page("Python API of the server", opening, *(part for name in SERVER for part in module_parts(name)))


def python_client() -> str:
    """Return the page of the client's public names."""
    opening = (
        "The public names of `agui_client`, from their docstrings. [Python client](../python.md) shows them in use."
    )
    return page("Python API of the client", opening, *module_parts("agui_client"))


def module_parts(name: str) -> Iterator[str]:
    """Iterate over the sections of a module."""
    module = importlib.import_module(name)
    yield f"## {name}"
    for public in sorted(module.__all__, key=str.lower):
        if not public.startswith("__"):
            yield section(public, getattr(module, public))


def section(name: str, value: object) -> str:
    """Return the section of one name."""
    parts = [f"### {name}", *described(name, value)]
    return "\n\n".join(part for part in parts if part)


def described(name: str, value: object) -> Iterator[str]:
    """Iterate over the paragraphs of a name."""
    if inspect.isclass(value):
        yield f"```python\nclass {name}{signature(value)}\n```"
        yield docstring(value)
        yield from class_parts(name, value)
    elif inspect.isroutine(value):
        yield function(name, value)
        yield docstring(value)
    else:
        yield f"```python\n{name} = {shortened(value)}\n```"


def class_parts(name: str, value: type) -> Iterator[str]:
    """Iterate over the members of an enum, or the public methods and properties of a class."""
    if issubclass(value, enum.Enum):
        yield "Values: " + ", ".join(code(each.value) for each in value) + "."
        return
    for key, attribute in vars(value).items():
        if key.startswith("_") or not inspect.getdoc(attribute):
            continue
        if isinstance(attribute, classmethod | staticmethod) or inspect.isroutine(attribute):
            plain = attribute.__func__ if isinstance(attribute, classmethod | staticmethod) else attribute
            yield f"{function(f'{name}.{key}', plain)}\n\n{docstring(attribute)}"
        elif isinstance(attribute, property):
            yield f"```python\n{name}.{key}\n```\n\n{docstring(attribute)}"


def function(name: str, value: object) -> str:
    """Return the signature of a function as a code block."""
    prefix = "async def" if inspect.iscoroutinefunction(value) else "def"
    return f"```python\n{prefix} {name}{signature(value)}\n```"


def signature(value: object) -> str:
    """Return a signature, one parameter a line if it is long; nothing if there is none."""
    is_class = inspect.isclass(value)
    if not callable(value):
        return ""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parts = [*parameters(found)]
    result = found.return_annotation
    returned = "" if is_class or result == found.empty else f" -> {annotation(result)}"
    text = f"({', '.join(parts)}){returned}"
    if len(text) < WIDTH:
        return text
    lines = "".join(f"    {part},\n" for part in parts)
    return f"(\n{lines}){returned}"


def parameters(found: inspect.Signature) -> Iterator[str]:
    """Iterate over the parameters of a signature, with the star before those that are named."""
    has_star = False
    for each in found.parameters.values():
        if each.name in {"self", "cls"}:
            continue
        has_star = has_star or each.kind is each.VAR_POSITIONAL
        if each.kind is each.KEYWORD_ONLY and not has_star:
            has_star = True
            yield "*"
        star = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
        kind = "" if each.annotation is each.empty else f": {annotation(each.annotation)}"
        default = "" if each.default is each.empty else f" = {shown_default(each.default)}"
        yield f"{star}{each.name}{kind}{default}"


def annotation(value: object) -> str:
    """Return a type with short names, without what validates it."""
    origin, arguments = typing.get_origin(value), typing.get_args(value)
    if origin in {Annotated, typing.Unpack}:
        return annotation(arguments[0])
    if origin in {Union, types.UnionType}:
        return union(list(map(annotation, arguments)))
    if origin is Literal:
        return f"Literal[{', '.join(repr(getattr(each, 'value', each)) for each in arguments)}]"
    if origin is not None or isinstance(value, list):
        name = getattr(value, "__name__", "")
        return f"{name}[{', '.join(map(annotation, arguments or typing.cast('list[object]', value)))}]"
    return plain_name(value)


def union(names: list[str]) -> str:
    """Return a union: the name of one of ``ag_ui.core``, or its members."""
    named = (name for last, name in UNIONS.items() if last in names and len(names) >= SEVERAL)
    return next(named, " | ".join(names))


def plain_name(value: object) -> str:
    """Return the last part of a type's name."""
    if value is type(None) or value is ...:
        return "None" if value is not ... else "..."
    text = value if isinstance(value, str) else getattr(value, "__name__", str(value))
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)


def shown_default(value: object) -> str:
    """Return a default if it is a value that can be written, else an ellipsis."""
    is_plain = value is None or isinstance(value, bool | int | float | str) or value == ()
    text = f"{type(value).__name__}.{value.name}" if isinstance(value, enum.Enum) else repr(value)
    return text if is_plain and len(text) < WIDTH // 2 else "…"


def docstring(value: object) -> str:
    """Return a docstring as Markdown: its sections as bold words, their entries as a list."""
    lines = []
    for line in (inspect.getdoc(value) or "").replace("``", "`").splitlines():
        if line in {"Args:", "Attributes:", "Raises:", "Returns:", "Yields:", "Rules:"}:
            lines += [f"**{line.removesuffix(':')}**", ""]
        elif line.startswith("    ") and not line.startswith("     ") and ": " in line:
            term, _, meaning = line.strip().partition(": ")
            lines.append(f"- `{term}`: {meaning}")
        else:
            lines.append(line.strip() if line.startswith("     ") else line)
    return "\n".join(lines)


def shortened(value: object) -> str:
    """Return the value of a constant, cut where it is long."""
    values = sorted(map(str, value)) if isinstance(value, frozenset) else value
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(values))
    return text if len(text) <= 300 else f"{text[:300]}…"  # noqa: PLR2004 - some lines
