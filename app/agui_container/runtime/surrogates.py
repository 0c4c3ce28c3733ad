"""Surrogates in text: halves of a symbol that JSON may escape one by one, and that UTF-8 cannot encode.

A model server may split a symbol such as an emoji over two pieces of a stream. Python then has one half at the end of
the first piece and the other at the beginning of the next one. A half without its other remains where a text was cut
inside a symbol. It becomes U+FFFD.
"""

import re
from typing import Final

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from agui_container.protocol.strict_json import replace_half_pairs, without_large_integers

HIGH_FIRST, HIGH_LAST = "\ud800", "\udbff"

HIGH, LOW = rb"u[dD][89abAB][0-9a-fA-F]{2}", rb"u[dD][c-fC-F][0-9a-fA-F]{2}"
ESCAPE: Final = re.compile(rb"\\(?<!\\\\)(?:\\\\)*+(?:(?P<pair>%b\\%b)|%b|%b)" % (HIGH, LOW, HIGH, LOW))
"""An escaped pair, or an escaped half of one. Two backslashes are one in the text and escape nothing."""

REPLACEMENT: Final = rb"\ufffd"


def split_half(text: str) -> tuple[str, str]:
    """Return the text, and the first half of a pair that it ends with, if it does."""
    return (text[:-1], text[-1]) if HIGH_FIRST <= text[-1:] <= HIGH_LAST else (text, "")


def repair_escapes(line: bytes) -> bytes:
    """Return a line of JSON with U+FFFD in place of each escaped half of a symbol, which strict parsers refuse."""
    return ESCAPE.sub(_repaired, line)


def _repaired(escape: re.Match[bytes]) -> bytes:
    found = escape[0]
    return found if escape["pair"] else found[: -len(REPLACEMENT)] + REPLACEMENT


def json_text(value: object) -> str:
    """Return the result of a function as JSON, with U+FFFD for halves and with strings for infinite numbers."""
    return without_large_integers(_to_json(value), as_text=True).decode()


def _to_json(value: object) -> bytes:
    try:
        return to_json(value, inf_nan_mode="strings")
    except PydanticSerializationError:  # The usual reason is a half.
        with_whole_keys, _ = replace_half_pairs(value)
        repaired, _ = replace_half_pairs(to_jsonable_python(with_whole_keys))
        return to_json(repaired, inf_nan_mode="strings")
