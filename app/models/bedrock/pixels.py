"""How wide and high a picture is, from its first bytes.

Rule: only headers are read, nothing is decoded; what cannot be told is None, and then the provider decides. Sources:
the PNG, GIF, WebP and JPEG specifications; a JPEG's size is in its first frame header, behind segments of any length.
"""

import struct

Size = tuple[int, int]
"""Width and height in pixels."""

FILLER = 0xFF

FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The second byte of JPEG's markers that begin a frame; the three others are tables."""


def size_of(kind: str, data: bytes) -> Size | None:
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
