"""Routes whose paths contain ids.

Rule: a path is matched before it is decoded. ``/`` separates segments, and ``%2F`` is part of an id. So every id has
exactly one address, and no id can match another route.
"""

from urllib.parse import quote, unquote

from starlette.routing import Match, Route
from starlette.types import Scope


class RawPathRoute(Route):
    """A route whose parameters are single segments of the raw path, decoded after the match."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        raw_path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
        match, child_scope = super().matches({**scope, "path": raw_path.decode("latin-1")})
        if match is not Match.NONE:
            parameters = child_scope["path_params"]
            child_scope["path_params"] = {name: unquote(value) for name, value in parameters.items()}
        return match, child_scope
