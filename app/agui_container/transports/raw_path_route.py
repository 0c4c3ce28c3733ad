"""Routes with ids in them.

Rule: a path is matched as it was sent. A slash separates, and one that is written as ``%2F`` is part of an id, so every
id has exactly one address and no id can pass for another route.
"""

from urllib.parse import quote, unquote

from starlette.routing import Match, Route
from starlette.types import Scope


class RawPathRoute(Route):
    """A route whose parameters are single segments of the path as it was sent, decoded afterwards."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As every route, on the path that still has its escapes."""
        sent: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
        match, found = super().matches({**scope, "path": sent.decode("latin-1")})
        if match is not Match.NONE:
            found["path_params"] = {name: unquote(value) for name, value in found["path_params"].items()}
        return match, found
