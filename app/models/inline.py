"""Data that came with a message: its bytes, and what kind of picture they are.

Rule: the bytes are believed and the label is not, because providers refuse what is not what it says. What they refuse
stays in the history and would end the conversation, so models look before they send it.
"""

import base64
import binascii
import re

_MAGIC: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "png"),
    (re.compile(rb"\xff\xd8\xff"), "jpeg"),
    (re.compile(rb"GIF8[79]a"), "gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "webp"),
)


def decoded(value: str) -> bytes | None:
    """The bytes of base64; None where it is not that."""
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None


def picture_kind(data: bytes) -> str | None:
    """``png``, ``jpeg``, ``gif`` or ``webp``, which every model with eyes can see; None for all else."""
    return next((kind for pattern, kind in _MAGIC if pattern.match(data)), None)
