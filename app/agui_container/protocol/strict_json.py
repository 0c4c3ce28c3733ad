"""JSON and text of clients, models and tools: pydantic's parser, large integers, and halves of surrogate pairs.

Rule: every JSON reader must understand the same value. The parser refuses NaN, infinities, invalid Unicode and more
than 200 levels. Numbers that a double cannot hold are refused here by their path. In output such integers count as
infinite numbers, because most JSON readers fail on them as they fail on Infinity. Source: RFC 8259, sections 4 to 8.

Rule: a body is refused before it is parsed if it has too many values, because the parser blocks all threads.

A model server, an agent or a client may cut a text inside a symbol such as an emoji. JSON can escape the half that
remains, and Python's strings can hold it, but UTF-8 cannot encode it and strict parsers refuse it.

Rule: halves that follow each other are joined, and any other is replaced by U+FFFD. Only this module replaces halves.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping
from math import isinf
from typing import Final

from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from agui_container.protocol.errors import validation_error

STRINGS = "strings and keys"
LIMITS: Mapping[str, int] = {STRINGS: 200_000, "lists and objects": 250_000, "values": 1_000_000}
"""Maximum counts of a body. They bound the time of the parser and the memory of its values: ``[]`` takes 3 bytes in the
body and 60 in memory, and a key takes ten times as long as a number."""

TOO_LARGE = "the number is too large."

SAFE_DIGITS = 308
"""Number of digits up to which every integer fits into a double."""

DIGITS_TO_ZERO = bytes.maketrans(b"123456789E", b"000000000e")
"""Translation of every digit to zero. A long number is then found by a plain search, without a regular expression."""

UNREAD_DIGITS = re.compile(rb"(?<=[0-9]{400})[0-9]+")
"""Digits that change no double. The parser refuses numbers of more than 4,300 without their path."""

LONG_NUMBER = b"0" * (SAFE_DIGITS + 1)
LONG_EXPONENT = b"0e000"


Warn = Callable[[str], None]
"""Function that logs a warning."""


def parse_json(body: bytes, warn: Warn) -> object:
    """Parse a body, with U+FFFD for halves of surrogate pairs. Raises ``AppError`` VALIDATION_ERROR."""
    if not body.strip():
        raise validation_error("The body is empty; a RunAgentInput is expected.")
    _check_counts(body)
    whole = whole_json(body)
    if whole != body:
        warn("halves of surrogate pairs replaced")
    try:
        document: object = from_json(whole, allow_inf_nan=False)
    except ValueError as error:
        if (shorter := UNREAD_DIGITS.sub(b"", whole)) != whole:  # the error may be that of a number
            return parse_json(shorter, warn)
        raise validation_error(f"The body is not valid JSON: {error}.") from error
    if (path := _large_number(body, document)) is not None:
        raise validation_error(f"{path}: {TOO_LARGE}")
    return document


def parse_finite_json(text: str) -> object:
    """Parse others' JSON. Raises ``ValueError``, also for a number that a double cannot hold."""
    value: object = from_json(text, allow_inf_nan=False)
    if _large_number(text.encode(), value) is not None:
        raise ValueError(TOO_LARGE)
    return value


def parse_object(arguments: str) -> dict[str, object] | None:
    """Return the arguments of a call, or None if they are no JSON object. A text without any means none."""
    try:
        value = parse_finite_json(arguments or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


# --- limits -----------------------------------------------------------------------------------------------------------


def _check_counts(body: bytes) -> None:
    """Count symbols in the bytes, which takes little time. Those in strings are text, such as code."""
    if _exceeded(body) is not None:
        body = body.replace(rb"\\", b"").replace(rb"\"", b"")  # so that each quote begins or ends a string
        if _exceeded(body) != STRINGS:
            body = b'""'.join(body.split(b'"')[::2])
        if (name := _exceeded(body)) is not None:
            raise validation_error(f"The body has more than {LIMITS[name]} {name}.")


def _exceeded(body: bytes) -> str | None:
    """Return the first limit that the symbols exceed which begin or separate values."""
    counts = body.count(b'"') // 2, body.count(b"[") + body.count(b"{"), body.count(b",")
    return next((name for (name, most), number in zip(LIMITS.items(), counts, strict=True) if number > most), None)


# --- large numbers ----------------------------------------------------------------------------------------------------


def _large_number(data: bytes, document: object) -> str | None:
    """Return the path of a number that a double cannot hold, such as ``state.count``, or ``body`` for the document."""
    zeros = data.translate(DIGITS_TO_ZERO, b"+")
    if LONG_NUMBER not in zeros and LONG_EXPONENT not in zeros:
        return None
    path = _path_to_large(document)
    return None if path is None else ".".join(path) or "body"


def _path_to_large(node: object) -> list[str] | None:
    for name, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        if (path := _path_to_large(value)) is not None:
            return [str(name), *path]
    return [] if isinstance(node, int | float) and abs(node) > sys.float_info.max else None


def without_large_integers(data: bytes, *, as_text: bool = False) -> bytes:
    """Return the JSON with integers that are too large as "Infinity" or "-Infinity" if ``as_text``, else as null."""
    if LONG_NUMBER not in data.translate(DIGITS_TO_ZERO):
        return data

    def read_integer(text: str) -> int | str | None:
        if len(text) <= SAFE_DIGITS or not isinf(float(text)):
            return int(text)
        return f"{'-' * text.startswith('-')}Infinity" if as_text else None

    return to_json(json.loads(data, parse_int=read_integer), inf_nan_mode="constants")


def json_text(value: object) -> str:
    """Return the result of a function as JSON, with U+FFFD for halves and with strings for infinite numbers."""
    try:
        data = to_json(value, inf_nan_mode="strings")
    except PydanticSerializationError:  # The usual reason is a half.
        data = to_json(whole_value(to_jsonable_python(whole_value(value))), inf_nan_mode="strings")
    return without_large_integers(data, as_text=True).decode()


# --- halves of surrogate pairs ----------------------------------------------------------------------------------------

HIGH_FIRST, HIGH_LAST = "\ud800", "\udbff"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

HIGH, LOW = rb"u[dD][89abAB][0-9a-fA-F]{2}", rb"u[dD][c-fC-F][0-9a-fA-F]{2}"
ESCAPE: Final = re.compile(rb"\\(?<!\\\\)(?:\\\\)*+(?:(?P<pair>%b\\%b)|%b|%b)" % (HIGH, LOW, HIGH, LOW))
"""An escaped pair, or an escaped half of one. Two backslashes are one in the text and escape nothing."""

ESCAPED_REPLACEMENT: Final = rb"\ufffd"


def split_half(text: str) -> tuple[str, str]:
    """Return the text, and the first half of a pair that it ends with, if it does."""
    return (text[:-1], text[-1]) if HIGH_FIRST <= text[-1:] <= HIGH_LAST else (text, "")


def whole_text(text: str) -> str:
    """Return a text with each pair of surrogates as one symbol, and U+FFFD in place of a half without its other."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def whole_json(body: bytes) -> bytes:
    """Return JSON with U+FFFD in place of each escaped half."""
    return ESCAPE.sub(_whole_escape, body) if b"\\ud" in body or b"\\uD" in body else body


def _whole_escape(escape: re.Match[bytes]) -> bytes:
    found = escape[0]
    return found if escape["pair"] else found[: -len(ESCAPED_REPLACEMENT)] + ESCAPED_REPLACEMENT


def whole_value(node: object) -> object:
    """Return a value of JSON with U+FFFD for each half in its texts and names. Tuples become lists."""
    match node:
        case str():
            return whole_text(node)
        case list() | tuple():
            return list(map(whole_value, node))
        case dict():
            return {whole_value(name): whole_value(value) for name, value in node.items()}
    return node
