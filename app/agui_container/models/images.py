"""Data that came with a message: its bytes, and what kind of picture they are.

Rule: the bytes are believed and the label is not, because providers refuse what is not what it says. What they refuse
stays in the history and would end the conversation, so models look before they send it.

How wide and high a picture is, from its first bytes.

Rule: only headers are read, nothing is decoded; what cannot be told is None, and then the provider decides. Sources:
the PNG, GIF, WebP and JPEG specifications; a JPEG's size is in its first frame header, behind segments of any length.
"""

import base64
import binascii
import re
import struct

_MAGIC: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "png"),
    (re.compile(rb"\xff\xd8\xff"), "jpeg"),
    (re.compile(rb"GIF8[79]a"), "gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "webp"),
)


def decode_base64(value: str) -> bytes | None:
    """The bytes of base64; None where it is not that."""
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None


def image_kind(data: bytes) -> str | None:
    """``png``, ``jpeg``, ``gif`` or ``webp``, which every model with eyes can see; None for all else."""
    return next((kind for pattern, kind in _MAGIC if pattern.match(data)), None)


Size = tuple[int, int]
"""Width and height in pixels."""

FILLER = 0xFF

FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The second byte of JPEG's markers that begin a frame; the three others are tables."""


def image_size(kind: str, data: bytes) -> Size | None:
    """The size of a ``png``, ``gif``, ``webp`` or ``jpeg``; None where its header is not whole."""
    try:
        return READERS[kind](data)
    except struct.error:
        return None


def _png(data: bytes) -> Size:
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> Size:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _webp(data: bytes) -> Size | None:
    form = data[12:16]
    if form == b"VP8X":
        low = struct.unpack_from("<6B", data, 24)
        return 1 + int.from_bytes(low[:3], "little"), 1 + int.from_bytes(low[3:], "little")
    if form == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF


def _jpeg(data: bytes) -> Size | None:
    at = 2
    while True:
        filler, marker, length = struct.unpack_from(">BBH", data, at)
        if filler != FILLER:
            return None
        if marker == FILLER:
            at += 1
        elif marker in FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        else:
            at += 2 + length


READERS = {"png": _png, "gif": _gif, "webp": _webp, "jpeg": _jpeg}
