"""Detection and removal of integers that a double cannot hold.

Rule: JSON allows such integers, but most JSON readers fail on them as they fail on Infinity. They are therefore treated
like Infinity: refused in client input and replaced by null in output. Source: RFC 8259, section 6.
"""

import json
from math import isinf

from pydantic_core import to_json

SAFE_DIGITS = 308
"""Number of digits up to which every integer fits into a double."""

DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
"""Translation of every digit to zero. A long number is then found by a plain search, without a regular expression."""

LONG_NUMBER = b"0" * (SAFE_DIGITS + 1)


def is_too_large(text: str) -> bool:
    """Return True if a double cannot hold the integer that ``text`` spells."""
    return len(text) > SAFE_DIGITS and isinf(float(text))


def without_large_integers(data: bytes) -> bytes:
    """Return the JSON with null in place of each integer that is too large. Other JSON is returned unchanged."""
    if LONG_NUMBER not in data.translate(DIGITS_TO_ZERO):
        return data
    return to_json(json.loads(data, parse_int=_integer_or_none), inf_nan_mode="constants")


def _integer_or_none(text: str) -> int | None:
    return None if is_too_large(text) else int(text)
