"""Halves of surrogate pairs: joined where both follow each other, else replaced by U+FFFD.

A model server, an agent or a client may cut a text inside a symbol such as an emoji. JSON can escape the half that
remains, and Python's strings can hold it, but UTF-8 cannot encode it and strict parsers refuse it.

Rule: nothing else in this server replaces a half.
"""

import re
from typing import Final

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
