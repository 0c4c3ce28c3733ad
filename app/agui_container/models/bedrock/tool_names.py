"""Tool names and call ids as Bedrock takes them: at most 64 of ``[a-zA-Z0-9_-]``.

Rule: the same name always becomes the same wire name, so that cached prompts stay cached. Ids get the same narrow
alphabet although Bedrock's own is wider: the models behind it are stricter.
"""

import hashlib
import re
from collections.abc import Iterable

LONGEST = 64
_FITS = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_STRANGE = re.compile(r"[^a-zA-Z0-9_-]")


def fit_name(name: str, salt: str = "") -> str:
    """The name itself where Bedrock takes it; else what is left of it and a hash of the whole."""
    if not salt and _FITS.fullmatch(name):
        return name
    digest = hashlib.sha256(f"{salt}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_STRANGE.sub('_', name)[: LONGEST - 9]}_{digest}"


def wire_names(names: Iterable[str]) -> dict[str, str]:
    """Wire name to name. Of two names that collide the first is kept: nobody may take the name of another's tool."""
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(fit_name(name), name)
    return found


class CallIds:
    """Ids of calls in one request: fitted, and never used twice."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def new_wire_id(self, call_id: str) -> str:
        """A new wire id for a call."""
        fresh, times = fit_name(call_id), 0
        while fresh in self._used:
            times += 1
            fresh = fit_name(call_id, salt=str(times))
        self._used.add(fresh)
        return fresh
