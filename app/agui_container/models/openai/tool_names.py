"""Conversion between tool names and the names that the API allows.

A valid name stays as it is. Any other name loses its invalid characters and gets a hash of the original. So the same
tool has the same name in every request: in the tools, in the history, and in the provider's cache.

Source: ``name`` of a function tool in the OpenAI API reference.
"""

import hashlib
import re
from collections.abc import Iterable

MAX_NAME = 64
_VALID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_INVALID = re.compile(r"[^a-zA-Z0-9_-]")
_HASH_LENGTH = 8


def wire_name(name: str) -> str:
    """Return the name that is sent to the server."""
    if _VALID.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:_HASH_LENGTH]
    return f"{_INVALID.sub('_', name)[: MAX_NAME - _HASH_LENGTH - 1]}_{digest}"


class ToolNames:
    """Names of the tools of one prompt."""

    def __init__(self, names: Iterable[str]) -> None:
        self._originals: dict[str, str] = {}
        for name in names:
            # The first wins, because this server's own tools come before those of clients.
            self._originals.setdefault(wire_name(name), name)

    def original(self, name: str) -> str:
        """Return the tool's own name for a wire name. A name that no tool has stays as it is."""
        return self._originals.get(name, name)
