"""Tool names and call ids that Bedrock accepts: at most 64 characters of ``[a-zA-Z0-9_-]``.

Rule: the same name always becomes the same wire name, so that cached prompts stay cached. Ids get the same alphabet
although Bedrock allows more characters, because some of its models do not.
"""

import hashlib
import re
from collections.abc import Iterable

MAX_LENGTH = 64
_VALID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_INVALID = re.compile(r"[^a-zA-Z0-9_-]")


def fit_name(name: str, salt: str = "") -> str:
    """Return the name itself if Bedrock accepts it, or else its valid characters and a hash of the whole name."""
    if not salt and _VALID.fullmatch(name):
        return name
    digest = hashlib.sha256(f"{salt}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_INVALID.sub('_', name)[: MAX_LENGTH - 9]}_{digest}"


def wire_names(names: Iterable[str]) -> dict[str, str]:
    """Map wire names to names. If two names have the same wire name, the first wins."""
    by_wire_name: dict[str, str] = {}
    for name in names:
        by_wire_name.setdefault(fit_name(name), name)
    return by_wire_name


class CallIds:
    """Wire ids of the calls in one request. Each is used once."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def new_wire_id(self, call_id: str) -> str:
        """Return a wire id for a call that no other call of the request has."""
        wire_id, attempts = fit_name(call_id), 0
        while wire_id in self._used:
            attempts += 1
            wire_id = fit_name(call_id, salt=str(attempts))
        self._used.add(wire_id)
        return wire_id
