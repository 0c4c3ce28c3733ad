"""Imports by name: objects that settings name as ``module:attribute``, lazy names of public modules, and extras.

Rule: only this module imports an object that a setting names. Every mistake is reported at the start in one sentence.
"""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from importlib.util import find_spec

EXTRAS: Mapping[str, Sequence[str]] = {
    "aws": ("boto3",),
    "cli": ("pathspec", "prompt_toolkit", "rich", "watchfiles"),
    "grpc": ("grpclib",),
    "jwt": ("jwt", "cryptography"),
    "mcp": ("mcp",),
    "metrics": ("prometheus_client",),
    "postgresql": ("sqlalchemy", "alembic", "psycopg"),
    "redis": ("redis",),
    "sqlite": ("sqlalchemy", "alembic", "aiosqlite"),
}
"""Modules that an extra of this package installs. The image has all of them but those of ``cli``."""


class BadReference(ValueError):
    """A setting names an object that cannot be imported. The message is for the operator."""


def import_string(reference: str) -> object:
    """Import a module and return its attribute. The attribute may be a dotted path.

    Raises:
        BadReference: The module cannot be imported or has no such attribute.
    """
    module_name, path = split_reference(reference)
    module = _module(module_name)
    try:
        return reduce(getattr, path.split("."), module)
    except AttributeError as error:
        raise BadReference(f"The module '{module_name}' has no '{path}'.") from error


def split_reference(reference: str) -> tuple[str, str]:
    """Return the module and the path of the attribute that a setting names. Raises ``BadReference``."""
    module_name, colon, path = reference.strip().partition(":")
    if not (module_name and colon and path):
        raise BadReference(f"'{reference}' is not of the form module:attribute, for example my_agent:agent.")
    return module_name, path


def _module(name: str) -> object:
    try:
        return importlib.import_module(name)
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and (name == missing or name.startswith(f"{missing}.")):
            raise BadReference(
                f"There is no module '{missing}', neither in the working folder nor installed."
            ) from None
        raise BadReference(f"The module '{name}' cannot be imported: {type(error).__name__}: {error}") from error


def lazy_attributes(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Make a ``__getattr__`` (PEP 562) that imports a public name from its home when it is first used."""

    def get_attribute(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'", name=name)
        return own_attribute(homes[name], name)

    return get_attribute


def own_attribute(module: str, name: str) -> object:
    """Import a module of this package, which may need a package that is optional. Raises ``ImportError``."""
    return getattr(importlib.import_module(f"agui_container.{module}"), name)


def missing_module(extra: str) -> str | None:
    """Return the first module of an extra that is not installed, or None. Nothing is imported."""
    return next((name for name in EXTRAS[extra] if not is_installed(name)), None)


def is_installed(name: str) -> bool:
    """Return True if a module can be imported. Nothing is imported, except the package around it."""
    return sys.modules[name] is not None if name in sys.modules else find_spec(name) is not None


def advice_for(extra: str) -> str:
    """Return the command that installs an extra, as a part of a sentence."""
    return f"Install it with: pip install 'agui-container[{extra}]'"
