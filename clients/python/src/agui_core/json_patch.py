"""JSON Patch (RFC 6902) on a JSON document, by the package ``jsonpatch``.

Rule: a patch applies completely or not at all. A patch without ``copy`` and ``move`` is applied in place, so its cost
depends on the patch and not on the size of the document. Any other patch is applied to a copy of the document, one
operation after the other, because the depth and size of what an operation adds is checked first.

Sources: RFC 6901, RFC 6902; AG-UI spec 1.1, basic/patterns/snapshots#deltas.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ag_ui.core import StateDeltaEvent
from jsonpatch import JsonPatch, JsonPatchException, JsonPatchTestFailed
from jsonpointer import EndOfList, JsonPointer, JsonPointerException
from pydantic_core import from_json, to_json

MAX_DEPTH = 190
"""Maximum number of levels of a document. The JSON parser cannot read a deeper document."""

MAX_BYTES = 16_000_000
"""Maximum bytes of JSON that a document and the copies which one patch makes in it have together.

Without the limit patches could fill the memory, because a copy of the document into itself doubles its size.
"""

MOVING = frozenset({"copy", "move"})
"""Operations that add a value of the document."""

SCALARS = frozenset({int, bool, type(None)})
"""Types of values that need no copy."""

Json = object
"""None, bool, int, float, str, or a list or dict of these."""

Operation = Mapping[str, Any]


class PatchError(ValueError):
    """A patch does not apply. The document is unchanged. The text names the operation and the path."""


def apply_patch(document: Json, event: StateDeltaEvent) -> Json:
    """Apply a patch and return the document, which is changed in place or replaced.

    Args:
        document: the document. Values of the patch are copied into it.
        event: the patch. Its values may contain pydantic models.

    Raises:
        PatchError: the patch does not apply.
        ValueError: a value is not JSON.
    """
    operations = [_plain(operation) for operation in event.delta]
    if any(operation["op"] in MOVING for operation in operations):
        return _apply_to_copy(document, operations)
    try:
        for number, operation in enumerate(operations, 1):
            _check_depth(number, operation, operation.get("value"))
        return JsonPatch(map(_with_copied_value, operations)).apply(document, in_place=True, atomic=True)
    except (JsonPatchException, JsonPointerException):
        return _apply_to_copy(document, operations)  # names the operation that does not apply


def _plain(operation: Any) -> Operation:  # noqa: ANN401 - the classes of operations have no public names
    """Return an operation of the event as plain JSON.

    To remove the whole document is to replace it by null, as clients do.
    """
    op, path = operation.op, operation.path
    if op in MOVING:
        return {"op": op, "path": path, "from": operation.from_}
    if op == "remove":
        return {"op": op, "path": path} if path else {"op": "replace", "path": path, "value": None}
    value = operation.value
    return {"op": op, "path": path, "value": value if type(value) in SCALARS else copy_json(value)}


class _Copied:
    """A value that ``jsonpatch`` need not copy, because ``copy_json`` has done so."""

    def __init__(self, value: Json) -> None:
        self.value = value

    def __deepcopy__(self, memo: object) -> Json:
        return self.value


def _with_copied_value(operation: Operation) -> Operation:
    """Return an operation whose value is not copied once more."""
    is_inserted = operation["op"] in ("add", "replace") and type(operation["value"]) not in SCALARS
    return {**operation, "value": _Copied(operation["value"])} if is_inserted else operation


def _added_value(operation: Operation, document: Json) -> Json:
    """Return the value that an operation adds to the document. Raises ``JsonPointerException`` if there is none."""
    if operation["op"] not in MOVING:
        return operation.get("value")
    value = JsonPointer(operation["from"]).resolve(document)
    if isinstance(value, EndOfList):
        raise JsonPointerException("there is no item after the last one")
    return value


def _apply_to_copy(document: Json, operations: Sequence[Operation]) -> Json:
    data = to_json(document, inf_nan_mode="constants")
    target, size = from_json(data), len(data)
    for number, operation in enumerate(operations, 1):
        try:
            value = _added_value(operation, target)
            _check_depth(number, operation, value)
            if operation["op"] == "copy":
                size += len(to_json(value, inf_nan_mode="constants"))
                if size > MAX_BYTES:
                    raise _error(number, operation, "the document would be too large")
            target = JsonPatch([operation]).apply(target, in_place=True)
        except JsonPatchTestFailed:
            raise _error(number, operation, "the value is not equal") from None
        except (JsonPatchException, JsonPointerException):  # their texts may contain the document
            raise _error(number, operation, "the document has no such place") from None
    return target


def _error(number: int, operation: Operation, reason: str) -> PatchError:
    return PatchError(f"operation {number} ({operation['op']} {operation['path']!r}): {reason}")


def _check_depth(number: int, operation: Operation, value: Json) -> None:
    """Raise ``PatchError`` if the document would be nested too deeply with this value at the operation's path."""
    depth, level = operation["path"].count("/"), [value]
    while level:
        depth += 1
        level = [inner for node in level for inner in _children(node)]
    if depth > MAX_DEPTH:
        raise _error(number, operation, "the document would be nested too deeply")


def _children(node: Json) -> Iterable[Json]:
    """Return the members of an object or the items of an array; other values have none."""
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def copy_json(value: Json) -> Json:
    """Return a copy of a value as plain JSON. The value may contain pydantic models."""
    return from_json(to_json(value, inf_nan_mode="constants"))
