"""Surrogates in text: halves of a symbol that JSON may escape one by one, and that UTF-8 cannot encode.

A model server may split a symbol such as an emoji over two pieces of a stream. Python then has one half at the end of
the first piece and the other at the beginning of the next one.
"""

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from agui_container.protocol.strict_json import replace_half_pairs

HIGH_FIRST, HIGH_LAST = "\ud800", "\udbff"


def join_surrogates(text: str) -> str:
    """Return the text with each pair of surrogates as one symbol, and U+FFFD in place of a half without its other."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def split_half(text: str) -> tuple[str, str]:
    """Return the text, and the first half of a pair that it ends with, if it does."""
    return (text[:-1], text[-1]) if HIGH_FIRST <= text[-1:] <= HIGH_LAST else (text, "")


def json_text(value: object) -> str:
    """Return the result of a function as JSON, with U+FFFD for halves and with strings for infinite numbers."""
    try:
        return to_json(value, inf_nan_mode="strings").decode()
    except PydanticSerializationError:  # The usual reason is a half.
        repaired, _ = replace_half_pairs(to_jsonable_python(value))
        return to_json(repaired, inf_nan_mode="strings").decode()
