"""Strict JSON: a parser for client input, and the replacement of integers that a double cannot hold.

Rule: every JSON reader must understand the same value. A body is refused if it has duplicate keys, NaN, infinities,
numbers that a double cannot hold, invalid Unicode or too many levels. A caller may repair halves of surrogate pairs
instead. Integers that a double cannot hold count as infinite numbers in output, because most JSON readers fail on them
as they fail on Infinity. Source: RFC 8259, sections 4 to 8.
"""

import json
import re
from collections.abc import Callable, Iterator
from math import isfinite, isinf
from typing import NoReturn

from pydantic_core import from_json, to_json

from agui_container.protocol.errors import AppError, ErrorCode, clip_message

DEPTH_CHECK_BRACKETS = 100
"""Number of opening brackets from which the nesting depth of a body is checked. Fewer cannot be too deep."""

MAX_BRACKETS = 250_000
"""Maximum number of lists and objects of a body.

``[]`` takes 3 bytes in the body and 60 in memory, and the parser blocks all threads until it has read all of them.
"""

MAX_COMMAS = 1_500_000
"""Maximum number of commas between the values of a body. Many short values block the other threads, too."""

MAX_STRINGS = 500_000
"""Maximum number of strings and keys of a body. To make a string takes ten times as long as to read a comma."""

VALUE_BYTES = 64
"""Memory of a list, an object or a string besides its content, in bytes."""

MAX_KEYS = 100_000
"""Maximum number of keys of one object."""

MAX_DEPTH = 200
"""Maximum number of lists and objects inside each other: that of pydantic's parser, by which stores read."""

STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
HIGH_SURROGATES, LOW_SURROGATES = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
HALF_PAIR = re.compile("[\ud800-\udfff]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

TOO_LARGE = "the number is too large."

SAFE_DIGITS = 308
"""Number of digits up to which every integer fits into a double."""

DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
"""Translation of every digit to zero. A long number is then found by a plain search, without a regular expression."""

LONG_NUMBER = b"0" * (SAFE_DIGITS + 1)


def parse_json(body: bytes, repair: Callable[[object], object] | None = None) -> object:
    """Parse the body of a request.

    Args:
        body: UTF-8 JSON.
        repair: returns a document without its halves of surrogate pairs, or refuses it; None refuses it.

    Raises:
        AppError: VALIDATION_ERROR. The message names the place if a number or a text is at fault.
    """
    if not body.strip():
        raise_validation_error("The body is empty; a RunAgentInput is expected.")
    brackets = _check_counts(body)
    numbers = NumberReader()
    try:
        document: object = json.loads(
            body.decode(),
            object_pairs_hook=_object,
            parse_constant=numbers.read_constant,
            parse_float=numbers.read_float,
            parse_int=numbers.read_integer,
        )
    except UnicodeDecodeError:
        raise_validation_error("The body is not valid UTF-8.")
    except RecursionError:
        raise_validation_error("The body is nested too deeply.")
    except json.JSONDecodeError as error:
        raise_validation_error(f"The body is not valid JSON at line {error.lineno}, column {error.colno}.")
    if numbers.refused:
        target = numbers.refused[0]
        path = _path_to(lambda _, value: value is target, document)
        raise_validation_error(clip_message(f"{path}: {target.reason}"))
    if brackets >= DEPTH_CHECK_BRACKETS:
        _check_depth(document)
    if (b"\\ud" in body or b"\\uD" in body) and _has_half_pair(body):
        return (repair or refuse_half_pairs)(document)
    return document


NOT_FINITE = re.compile(r"[0-9][eE]\+?[0-9]{3}|[0-9]{309}")
"""Beginning of every number that a double may not hold. Texts may contain it, too."""


def parse_finite_json(text: str) -> object:
    """Parse JSON that others have written, such as the arguments of a tool call.

    Raises:
        ValueError: the text is not JSON, or a double cannot hold one of its numbers.
    """
    value: object = from_json(text, allow_inf_nan=False)
    if NOT_FINITE.search(text):
        numbers = NumberReader()
        json.loads(text, parse_float=numbers.read_float, parse_int=numbers.read_integer)
        if numbers.refused:
            raise ValueError(numbers.refused[0].reason)
    return value


def memory_size(body: bytes) -> int:
    """Estimate the bytes that a body occupies together with its parsed value. Symbols in texts count, too."""
    return len(body) + VALUE_BYTES * (body.count(b"[") + body.count(b"{") + body.count(b'"') // 2)


def _check_counts(body: bytes) -> int:
    """Refuse a body with too many values, because the parser blocks all threads. Return the number of brackets."""
    brackets = body.count(b"[") + body.count(b"{")
    if brackets > MAX_BRACKETS and brackets - _count_in_strings(body, b"[", b"{") > MAX_BRACKETS:
        raise_validation_error(f"The body has more than {MAX_BRACKETS} lists and objects.")
    commas = body.count(b",")
    if commas > MAX_COMMAS and commas - _count_in_strings(body, b",") > MAX_COMMAS:
        raise_validation_error(f"The body has more than {MAX_COMMAS} values.")
    if body.count(b'"') > 2 * MAX_STRINGS and sum(1 for _ in STRING.finditer(body)) > MAX_STRINGS:
        raise_validation_error(f"The body has more than {MAX_STRINGS} strings and keys.")
    return brackets


def _count_in_strings(body: bytes, *symbols: bytes) -> int:
    """Return the number of these symbols inside strings. They are text there, for example code."""
    return sum(string[0].count(symbol) for string in STRING.finditer(body) for symbol in symbols)


def _check_depth(document: object) -> None:
    """Refuse a document that is nested deeper than ``MAX_DEPTH``, because it could not be stored."""
    level = [document]
    for _ in range(MAX_DEPTH + 1):
        if not level:
            return
        level = [
            value
            for node in level
            for value in (node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
            if isinstance(value, dict | list)
        ]
    raise_validation_error("The body is nested too deeply.")


def _has_half_pair(body: bytes) -> bool:
    """Return True if a string has half of a surrogate pair."""
    high_ends_at = -1
    for escape in ESCAPE.finditer(body):
        code = int(escape[1], 16) if escape[1] else 0
        is_second_half = escape.start() == high_ends_at
        if (code in LOW_SURROGATES) != is_second_half:
            return True
        high_ends_at = escape.end() if code in HIGH_SURROGATES else -1
        if high_ends_at >= 0 and not body.startswith(b"\\u", high_ends_at):
            return True
    return False


def refuse_half_pairs(document: object) -> object:
    """Return the document. Refuse half of a surrogate pair, which UTF-8 cannot encode. The message names the field."""
    path = _path_to(lambda name, value: _is_broken(name) or _is_broken(value), document)
    if path is not None:
        raise_validation_error(clip_message(f"{whole_text(path)}: holds half of a surrogate pair."))
    return document


def replace_half_pairs(node: object) -> tuple[object, int]:
    """Return a JSON value with U+FFFD in place of each half of a surrogate pair, and the number of changed texts.

    Values that JSON does not have, and keys that are not texts, are kept.
    """
    if isinstance(node, str):
        text = whole_text(node)
        return text, text != node
    if isinstance(node, list | tuple):
        values = [replace_half_pairs(value) for value in node]
        return [value for value, _ in values], sum(count for _, count in values)
    if isinstance(node, dict):
        items = [(_repair_key(name), replace_half_pairs(value)) for name, value in node.items()]
        return {name: value for (name, _), (value, _) in items}, sum(a + b for (_, a), (_, b) in items)
    return node, 0


def _repair_key(name: object) -> tuple[object, int]:
    return replace_half_pairs(name) if isinstance(name, str) else (name, 0)


def whole_text(text: str) -> str:
    """Return a text with each pair of surrogates as one symbol, and U+FFFD in place of a half without its other."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_broken(value: object) -> bool:
    return isinstance(value, str) and HALF_PAIR.search(value) is not None


class RefusedNumber:
    """Placeholder in a document for a number that was refused."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class NumberReader:
    """Reader of the numbers of one body.

    Attributes:
        refused: placeholders of the numbers that other JSON readers do not accept. Their paths are known only after
            the whole document has been parsed.
    """

    def __init__(self) -> None:
        self.refused: list[RefusedNumber] = []

    def read_integer(self, text: str) -> int | RefusedNumber:
        """Return the integer, or a placeholder if a double cannot hold it."""
        return self._refuse(TOO_LARGE) if is_too_large(text) else int(text)

    def read_float(self, text: str) -> float | RefusedNumber:
        """Return the number, or a placeholder if it is not finite."""
        number = float(text)
        return number if isfinite(number) else self._refuse(TOO_LARGE)

    def read_constant(self, name: str) -> RefusedNumber:
        """Return a placeholder for NaN or an infinity, which are not JSON."""
        return self._refuse(f"{name} is not a JSON number.")

    def _refuse(self, reason: str) -> RefusedNumber:
        placeholder = RefusedNumber(reason)
        self.refused.append(placeholder)
        return placeholder


def _path_to(is_target: Callable[[object, object], bool], document: object) -> str | None:
    """Return the path of the first field for which ``is_target(name, value)`` is true, such as ``state.count``.

    Return ``body`` if the document itself is the target, or None if nothing is.
    """
    path: list[str] = []
    levels = [_members(document)]
    while levels:
        for name, value in levels[-1]:
            if is_target(name, value):
                return ".".join([*path, str(name)])
            if isinstance(value, dict | list):
                path.append(str(name))
                levels.append(_members(value))
                break
        else:
            levels.pop()
            del path[-1:]
    return "body" if is_target(None, document) else None


def _members(node: object) -> Iterator[tuple[object, object]]:
    """Iterate over the keys or indexes of an object or list, with their values."""
    if isinstance(node, dict):
        return iter(node.items())
    return enumerate(node) if isinstance(node, list) else iter(())


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(pairs) > MAX_KEYS:
        raise_validation_error(f"A JSON object in the body has more than {MAX_KEYS} keys.")
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise_validation_error("A JSON object in the body has the same key twice.")
    return fields


def is_too_large(text: str) -> bool:
    """Return True if a double cannot hold the integer that ``text`` spells."""
    return len(text) > SAFE_DIGITS and isinf(float(text))


def without_large_integers(data: bytes, *, as_text: bool = False) -> bytes:
    """Return the JSON without integers that are too large. Other JSON is returned unchanged.

    Args:
        data: valid JSON.
        as_text: True if they become "Infinity" or "-Infinity", False if they become null.
    """
    if LONG_NUMBER not in data.translate(DIGITS_TO_ZERO):
        return data

    def read_integer(text: str) -> int | str | None:
        if not is_too_large(text):
            return int(text)
        return f"{'-' * text.startswith('-')}Infinity" if as_text else None

    return to_json(json.loads(data, parse_int=read_integer), inf_nan_mode="constants")


def raise_validation_error(message: str) -> NoReturn:
    """Raise ``AppError`` VALIDATION_ERROR with this message."""
    raise AppError(ErrorCode.VALIDATION_ERROR, message)
