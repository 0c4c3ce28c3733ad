"""Any JSON value in the shape of ``JsonValue``.

Rule: the members of an object keep the order that a JavaScript client would give them, which is what makes two encoders
agree byte for byte: array indexes first, by size, then the others as they came (ECMA-262, OrdinaryOwnPropertyKeys).
"""

import math
from collections.abc import Iterable, Mapping, Sequence

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
Shape = dict[str, object]
"""What a message's class takes: its fields by name; a dict for a message, a list for a repeated field."""

MAX_INDEX = 2**32 - 2
"""The largest array index. Greater numbers are names like any other."""


def value_shape(value: Json) -> Shape:
    """``JsonValue``. Every number is a double, as in JavaScript."""
    match value:
        case str():
            return {"string_value": value}
        case bool():
            return {"bool_value": value}
        case int() | float():
            return {"number_value": _double(value)}
        case None:
            return {"null_value": 0}
        case Mapping():
            return {"object_value": object_shape(value)}
        case _:
            return {"array_value": {"values": [value_shape(each) for each in value]}}


def object_shape(value: Mapping[str, Json]) -> Shape:
    """``JsonObject``."""
    return {"members": [{"key": key, "value": value_shape(value[key])} for key in _in_order(value)]}


def _double(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _in_order(keys: Iterable[str]) -> Iterable[str]:
    indexes = [key for key in keys if key[:1].isdigit() and _is_index(key)]
    if not indexes:
        return keys
    return [*sorted(indexes, key=int), *(key for key in keys if key not in set(indexes))]


def _is_index(key: str) -> bool:
    if not (key.isascii() and key.isdigit()) or len(key) > len(str(MAX_INDEX)):
        return False
    return (key == "0" or key[0] != "0") and int(key) <= MAX_INDEX
