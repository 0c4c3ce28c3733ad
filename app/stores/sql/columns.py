"""How values are kept in columns.

Rule: whatever a caller sends can be stored and comes back as it was. PostgreSQL's text takes no NUL and no lone
surrogate, and its indexes take no long value: so words are escaped, and ids are found by their digests. JSON is bytes.
"""

import hashlib
import re

from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator

_ESCAPED = re.compile(r"\\(\\|0|u[0-9a-f]{4})")


class Words(TypeDecorator[str]):
    """Any string."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - as in the base
        """The string as it is stored."""
        return None if value is None else escaped(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - as in the base
        """The string as it was."""
        return None if value is None else unescaped(value)


def escaped(value: str) -> str:
    """The string without NUL and lone surrogates; reads the same where there is neither, nor a backslash."""
    value = value.replace("\\", "\\\\").replace("\0", "\\0")
    return value.encode("utf-8", "backslashreplace").decode()


def unescaped(value: str) -> str:
    """What ``escaped`` was given."""
    return _ESCAPED.sub(_unescape, value) if "\\" in value else value


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if code == "0":
        return "\0"
    return code if code == "\\" else chr(int(code[1:], 16))


def digest(*parts: str) -> bytes:
    """What stands for these strings, in this order, wherever they are looked for. 32 bytes."""
    hashed = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(b"%d:" % len(data))
        hashed.update(data)
    return hashed.digest()
