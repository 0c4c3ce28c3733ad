"""Public names of the Python packages: signatures and docstrings."""

import enum
import importlib
import inspect
from collections.abc import Iterator

from website.tables import code, page

SERVER = ("agui_container", "agui_container.models", "agui_container.tools", "agui_container.testing")
PREFIXES = ("agui_container.", "agui_client.", "ag_ui.core.", "collections.abc.", "typing.")


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
    """Return a signature with short names of types, one parameter a line if it is long; nothing if there is none."""
    if not callable(value):
        return ""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    for prefix in PREFIXES:
        text = text.replace(prefix, "")
    text = text.replace("'", "") if "'" in text and '"' not in text else text
    return text if len(text) < 100 else text.replace(", ", ",\n    ")  # noqa: PLR2004 - a readable width


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
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}…"  # noqa: PLR2004 - some lines
