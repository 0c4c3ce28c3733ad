"""JSON Patch (RFC 6902) on a JSON document, in place: all operations of a patch or none.

Rule: the cost is that of the paths and values in the patch, never that of the document; so a large state with small
deltas stays cheap. Undoing is recorded step by step, for the operation that fails after others were done. Values put
into the document are copies: what a caller does to its own afterwards changes nothing here.

Sources: RFC 6901, RFC 6902; AG-UI spec 1.1, basic/patterns/snapshots#deltas.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from ag_ui.core import StateDeltaEvent
from pydantic_core import from_json, to_json

INDEX = re.compile(r"0|[1-9][0-9]*")

MAX_DEPTH = 190
"""Levels of a document; one that is deeper could be written, but not be read again."""

MAX_COPIED = 8_000_000
"""Bytes of JSON that ``copy`` may add to a document: each copy of a copy doubles it, and thirty take all memory."""

Json = object
"""None, bool, int, float, str, or a list or dict of these."""


class PatchError(ValueError):
    """A patch does not apply; the document is as it was. The text names the operation and the path."""


class JsonDocument:
    """A JSON document that patches change.

    Args:
        value: the document; it is owned, and changed, from now on.
    """

    def __init__(self, value: Json) -> None:
        # The document is the one item of a list, so that the path "" has a parent like every other.
        self._root: list[Json] = [value]
        self._undo: list[Callable[[], object]] = []
        self._copied = 0

    @property
    def value(self) -> Json:
        """The document as it is now, not a copy."""
        return self._root[0]

    def apply(self, event: StateDeltaEvent) -> None:
        """Do the patch. Raises ``PatchError``, or another ``ValueError`` for a value that is no JSON."""
        self._undo.clear()
        try:
            self._apply_all(event)
        except BaseException:
            self._roll_back()
            raise

    def check(self, event: StateDeltaEvent) -> None:
        """Raises ``PatchError`` where ``apply`` would; changes nothing."""
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
                    raise PatchError("the value is another one")
            case _:
                raise PatchError("there is no such operation")

    # --- operations ---

    def _add(self, path: str, value: Json) -> None:
        check_depth(path, value)
        parent, key = self._parent(path)
        if parent is self._root:
            self._replace(path, value)
        elif isinstance(parent, dict):
            self._set(parent, key, value)
        else:
            at = len(parent) if key == "-" else parse_index(key, len(parent) + 1)
            parent.insert(at, value)
            self._undo.append(lambda: parent.pop(at))

    def _remove(self, path: str) -> None:
        parent, key = self._parent(path)
        if parent is self._root:
            self._replace(path, None)
        elif isinstance(parent, dict):
            removed = get_member(parent, key)
            del parent[key]
            self._undo.append(lambda: parent.__setitem__(key, removed))
        else:
            at = parse_index(key, len(parent))
            removed = parent.pop(at)
            self._undo.append(lambda: parent.insert(at, removed))

    def _replace(self, path: str, value: Json) -> None:
        check_depth(path, value)
        parent, key = self._parent(path)
        if isinstance(parent, dict):
            get_member(parent, key)
            self._set(parent, key, value)
        else:
            at = parse_index(key, len(parent))
            previous, parent[at] = parent[at], value
            self._undo.append(lambda: parent.__setitem__(at, previous))

    def _move(self, source: str, path: str) -> None:
        if path.startswith(f"{source}/"):
            raise PatchError("a value cannot move into itself")
        moved = self._get(source)
        if source != path:
            self._remove(source)
            self._add(path, moved)

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
        """The container that holds the place, and the place's key in it."""
        node: Json = self._root
        keys = ["0", *parse_pointer(path)]
        for key in keys[:-1]:
            node = get_child(node, key)
        if not isinstance(node, dict | list):
            raise PatchError("it is inside a value that has no parts")
        return node, keys[-1]


def parse_pointer(path: str) -> Sequence[str]:
    """The keys of a JSON pointer; the event's class has checked its form."""
    if not path:
        return ()
    return [token.replace("~1", "/").replace("~0", "~") for token in path[1:].split("/")]


def check_depth(path: str, value: Json) -> None:
    """Raises ``PatchError`` for a value that would be too deep at this place."""
    depth, level = len(parse_pointer(path)), [value]
    while level:
        depth += 1
        level = [inner for node in level for inner in children(node)]
    if depth > MAX_DEPTH:
        raise PatchError("it would be nested too deeply")


def children(node: Json) -> Iterable[Json]:
    """The parts of a value, if it has any."""
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def get_child(node: Json, key: str) -> Json:
    """What is at ``key``. Raises ``PatchError``."""
    if isinstance(node, dict):
        return get_member(node, key)
    if isinstance(node, list):
        return node[parse_index(key, len(node))]
    raise PatchError("it is inside a value that has no parts")


def get_member(node: dict[str, Json], key: str) -> Json:
    """The member of an object. Raises ``PatchError``."""
    try:
        return node[key]
    except KeyError:
        raise PatchError(f"there is no member {key!r}") from None


def parse_index(key: str, length: int) -> int:
    """The position in an array of ``length``. Raises ``PatchError``."""
    if not INDEX.fullmatch(key) or len(key) > len(str(length)) or int(key) >= length:
        raise PatchError(f"there is no position {key!r}")
    return int(key)


def copy_json(value: Json) -> Json:
    """A copy as plain JSON, whatever models it was made of."""
    return from_json(to_json(value, inf_nan_mode="constants"))


def is_equal_json(one: Json, other: Json) -> bool:
    """Equality of JSON values: 1 is 1.0 and not true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_equal_json(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_equal_json, one, other))
    return type(one) is type(other) and one == other if isinstance(one, str | dict | list) else one == other
