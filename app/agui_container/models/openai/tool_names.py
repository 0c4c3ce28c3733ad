"""Tool names as the API allows them, and back.

A name that fits stays as it is. Any other is made to fit and carries a hash of the original, so that the same tool has
the same name in every request: in the tools, in the history, and in the provider's cache.
"""

import hashlib
import re
from collections.abc import Iterable

MAX_NAME = 64
_FITS = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_STRANGE = re.compile(r"[^a-zA-Z0-9_-]")
_HASH = 8


def wire_name(name: str) -> str:
    """The name that a server is told."""
    if _FITS.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:_HASH]
    return f"{_STRANGE.sub('_', name)[: MAX_NAME - _HASH - 1]}_{digest}"


class ToolNames:
    """The names of one prompt's tools."""

    def __init__(self, names: Iterable[str]) -> None:
        self._originals: dict[str, str] = {}
        for name in names:
            # The first wins: servers refuse a name twice, and the server's own tools come first.
            self._originals.setdefault(wire_name(name), name)

    def original(self, name: str) -> str:
        """The tool's own name for what a model called; a name that no tool has stays as it is."""
        return self._originals.get(name, name)
