"""Any JSON value into a ``JsonValue``.

Rule: the members of an object keep the order that a JavaScript client would give them, which is what makes two encoders
agree byte for byte: array indexes first, by size, then the others as they came (ECMA-262, OrdinaryOwnPropertyKeys).
What is called ``PROTOTYPE`` is no member there but the object's prototype, so it is left out.
"""

import math
from collections.abc import Iterable
from typing import Any

MAX_INDEX = 2**32 - 2
"""The largest array index. Greater numbers are names like any other."""

PROTOTYPE = "__proto__"


def fill_value(message: Any, value: Any) -> None:  # noqa: ANN401 - a JsonValue, and any JSON
    """Set a ``JsonValue``, member by member: one call for a large value would hold up every other thread."""
    kind = type(value)
    if kind is str:
        message.string_value = value
    elif kind is dict:
        fill_object(message.object_value, value)
    elif kind is list:
        message.array_value.SetInParent()
        add = message.array_value.values.add
        for each in value:
            fill_value(add(), each)
    elif kind is bool:
        message.bool_value = value
    elif value is None:
        message.null_value = 0
    else:
        message.number_value = _double(value)


def fill_object(message: Any, value: dict[str, Any]) -> None:  # noqa: ANN401 - a JsonObject
    """Set a ``JsonObject``."""
    message.SetInParent()
    add = message.members.add
    for key in _in_order(value):
        if key != PROTOTYPE:
            member = add()
            member.key = key
            fill_value(member.value, value[key])


def _double(number: float) -> float:
    """A number as JavaScript has it."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _in_order(keys: Iterable[str]) -> Iterable[str]:
    indexes = {key for key in keys if key[:1].isdigit() and _is_index(key)}
    if not indexes:
        return keys
    return [*sorted(indexes, key=int), *(key for key in keys if key not in indexes)]


def _is_index(key: str) -> bool:
    if not (key.isascii() and key.isdigit()) or len(key) > len(str(MAX_INDEX)):
        return False
    return (key == "0" or key[0] != "0") and int(key) <= MAX_INDEX
