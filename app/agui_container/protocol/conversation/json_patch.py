"""JSON Patch (RFC 6902) on a JSON document, in place.

Rule: a patch applies completely or not at all. Its cost depends on the paths and values in the patch, not on the size
of the document, so each operation records its inverse instead of copying the document. Values from a patch are copied,
so that a caller cannot change the document through them.

Sources: RFC 6901, RFC 6902; AG-UI spec 1.1, basic/patterns/snapshots#deltas.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from ag_ui.core import StateDeltaEvent
from pydantic_core import from_json, to_json

INDEX = re.compile(r"0|[1-9][0-9]*")

MAX_DEPTH = 190
"""Maximum number of levels of a document. The JSON parser cannot read a deeper document."""

MAX_COPIED = 8_000_000
"""Maximum bytes of JSON that ``copy`` operations may add to a document.

Without the limit a patch could fill the memory, because a copy of the document into itself doubles its size.
"""

Json = object
"""None, bool, int, float, str, or a list or dict of these."""


class PatchError(ValueError):
    """A patch does not apply. The document is unchanged. The text names the operation and the path."""


class JsonDocument:
    """A JSON document that patches change.

    Args:
        value: the document. It is changed in place and must not be used by the caller afterwards.
    """

    def __init__(self, value: Json) -> None:
        # The document is the one item of a list, so that the path "" has a parent like every other.
        self._root: list[Json] = [value]
        self._undo: list[Callable[[], object]] = []
        self._copied = 0

    @property
    def value(self) -> Json:
        """Current value of the document, not a copy."""
        return self._root[0]

    def apply(self, event: StateDeltaEvent) -> None:
        """Apply a patch. Raises ``PatchError``, or another ``ValueError`` if a value is not JSON."""
        self._undo.clear()
        try:
            self._apply_all(event)
        except BaseException:
            self._roll_back()
            raise

    def check(self, event: StateDeltaEvent) -> None:
        """Raise ``PatchError`` if ``apply`` would. The document is not changed."""
        self.apply(event)
        self._roll_back()

    def _roll_back(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _apply_all(self, event: StateDeltaEvent) -> None:
        for number, operation in enumerate(event.delta, 1):
            source, value = getattr(operation, "from_", ""), getattr(operation, "value", None)
            try:
                self._apply_operation(operation.op, operation.path, source, value)
            except PatchError as error:
                raise PatchError(f"operation {number} ({operation.op} {operation.path!r}): {error}") from None

    def _apply_operation(self, op: str, path: str, source: str, value: Json) -> None:
        match op:
            case "add":
                self._add(path, copy_json(value))
            case "remove":
                self._remove(path)
            case "replace":
                self._replace(path, copy_json(value))
            case "move":
                self._move(source, path)
            case "copy":
                self._add(path, self._copy(source))
            case "test":
                if not is_equal_json(self._get(path), value):
                    raise PatchError("the value is not equal")
            case _:
                raise PatchError("the operation does not exist")

    # --- operations ---

    def _add(self, path: str, value: Json) -> None:
        check_depth(path, value)
        parent, key = self._parent(path)
        if parent is self._root:
            self._replace(path, value)
        elif isinstance(parent, dict):
            self._set(parent, key, value)
        else:
            index = len(parent) if key == "-" else parse_index(key, len(parent) + 1)
            parent.insert(index, value)
            self._undo.append(lambda: parent.pop(index))

    def _remove(self, path: str) -> None:
        parent, key = self._parent(path)
        if parent is self._root:
            self._replace(path, None)
        elif isinstance(parent, dict):
            removed = get_member(parent, key)
            del parent[key]
            self._undo.append(lambda: parent.__setitem__(key, removed))
        else:
            index = parse_index(key, len(parent))
            removed = parent.pop(index)
            self._undo.append(lambda: parent.insert(index, removed))

    def _replace(self, path: str, value: Json) -> None:
        check_depth(path, value)
        parent, key = self._parent(path)
        if isinstance(parent, dict):
            get_member(parent, key)
            self._set(parent, key, value)
        else:
            index = parse_index(key, len(parent))
            previous, parent[index] = parent[index], value
            self._undo.append(lambda: parent.__setitem__(index, previous))

    def _move(self, source: str, path: str) -> None:
        if path.startswith(f"{source}/"):
            raise PatchError("a value cannot move into itself")
        value = self._get(source)
        if source != path:
            self._remove(source)
            self._add(path, value)

    def _copy(self, source: str) -> Json:
        data = to_json(self._get(source), inf_nan_mode="constants")
        self._copied += len(data)
        if self._copied > MAX_COPIED:
            raise PatchError("too much would be copied")
        return from_json(data)

    def _set(self, parent: dict[str, Json], key: str, value: Json) -> None:
        if key in parent:
            previous = parent[key]
            self._undo.append(lambda: parent.__setitem__(key, previous))
        else:
            self._undo.append(lambda: parent.pop(key))
        parent[key] = value

    # --- paths ---

    def _get(self, path: str) -> Json:
        parent, key = self._parent(path)
        return get_child(parent, key)

    def _parent(self, path: str) -> tuple[dict[str, Json] | list[Json], str]:
        """Return the container that a path points into, and the last key of the path."""
        node: Json = self._root
        keys = ["0", *parse_pointer(path)]
        for key in keys[:-1]:
            node = get_child(node, key)
        if not isinstance(node, dict | list):
            raise PatchError("the path leads into a value that is not an object or array")
        return node, keys[-1]


def parse_pointer(path: str) -> Sequence[str]:
    """Return the keys of a JSON pointer. The event's class has validated its form."""
    if not path:
        return ()
    return [token.replace("~1", "/").replace("~0", "~") for token in path[1:].split("/")]


def check_depth(path: str, value: Json) -> None:
    """Raise ``PatchError`` if the document would be nested too deeply with this value at ``path``."""
    depth, level = len(parse_pointer(path)), [value]
    while level:
        depth += 1
        level = [inner for node in level for inner in children(node)]
    if depth > MAX_DEPTH:
        raise PatchError("the document would be nested too deeply")


def children(node: Json) -> Iterable[Json]:
    """Return the members of an object or the items of an array; other values have none."""
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def get_child(node: Json, key: str) -> Json:
    """Return the member or item at ``key``. Raises ``PatchError`` if there is none."""
    if isinstance(node, dict):
        return get_member(node, key)
    if isinstance(node, list):
        return node[parse_index(key, len(node))]
    raise PatchError("the path leads into a value that is not an object or array")


def get_member(node: dict[str, Json], key: str) -> Json:
    """Return the member of an object. Raises ``PatchError`` if there is none."""
    try:
        return node[key]
    except KeyError:
        raise PatchError(f"there is no member {key!r}") from None


def parse_index(key: str, length: int) -> int:
    """Return ``key`` as an index into an array of ``length``. Raises ``PatchError`` if it is out of range."""
    if not INDEX.fullmatch(key) or len(key) > len(str(length)) or int(key) >= length:
        raise PatchError(f"there is no position {key!r}")
    return int(key)


def copy_json(value: Json) -> Json:
    """Return a copy of a value as plain JSON. The value may contain pydantic models."""
    return from_json(to_json(value, inf_nan_mode="constants"))


def is_equal_json(one: Json, other: Json) -> bool:
    """Return True if two JSON values are equal. 1 equals 1.0 but not true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_equal_json(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_equal_json, one, other))
    return type(one) is type(other) and one == other if isinstance(one, str | dict | list) else one == other
