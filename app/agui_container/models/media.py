"""Inline data of a message: bytes, text, format and size of an image, and reports of parts that a model cannot take.

Rule: the format comes from the bytes, never from the label, because providers refuse images with a wrong label. A
refused image stays in the history and would make every later request fail, so models check images before they send
them. Only headers are read and nothing is decoded. A size that the header does not give is None, and the provider
decides.

Sources: the PNG, GIF, WebP and JPEG specifications. The size of a JPEG is in its first frame header, which follows
segments of any length.
"""

import base64
import logging
import re
import struct

from ag_ui.core import ContentPart, TextPart

from agui_container.log_values import format_fields
from agui_container.ports import MediaDroppedDelta
from agui_container.ports.files import handle_of
from agui_container.protocol.client_input import plain_base64

_SIGNATURES: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "png"),
    (re.compile(rb"\xff\xd8\xff"), "jpeg"),
    (re.compile(rb"GIF8[79]a"), "gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "webp"),
)


def decode_base64(value: str) -> bytes | None:
    plain = plain_base64(value)
    return None if plain is None else base64.b64decode(plain)


TEXT_TYPES = frozenset({"json", "xml", "yaml", "x-yaml", "toml", "sql", "javascript", "x-ndjson", "x-sh", "csv"})
"""Subtypes of ``application`` that are text."""


def is_text(mime_type: str) -> bool:
    kind, _, subtype = mime_type.partition("/")
    return kind == "text" or (kind == "application" and (subtype in TEXT_TYPES or subtype.endswith(("+json", "+xml"))))


def decode_text(data: bytes) -> str | None:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def image_kind(data: bytes) -> str | None:
    """Return ``png``, ``jpeg``, ``gif`` or ``webp``, the formats that every vision model accepts, or None."""
    return next((kind for pattern, kind in _SIGNATURES if pattern.match(data)), None)


Size = tuple[int, int]
"""Width and height in pixels."""

MARKER_PREFIX = 0xFF

FRAME_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Second byte of the JPEG markers that begin a frame. The three excluded markers begin tables."""


def image_size(kind: str, data: bytes) -> Size | None:
    """Return the size of an image of one of the kinds of ``image_kind``, or None if its header is incomplete."""
    try:
        return SIZE_READERS[kind](data)
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
    offset = 2
    while True:
        prefix, marker, length = struct.unpack_from(">BBH", data, offset)
        if prefix != MARKER_PREFIX:
            return None
        if marker == MARKER_PREFIX:
            offset += 1
        elif marker in FRAME_MARKERS:
            height, width = struct.unpack_from(">HH", data, offset + 5)
            return width, height
        else:
            offset += 2 + length


SIZE_READERS = {"png": _png, "gif": _gif, "webp": _webp, "jpeg": _jpeg}


# --- parts that a model cannot take -----------------------------------------------------------------------------------

logger = logging.getLogger(__name__)

NO_FILE = "this server has no such file"
NOT_INLINE = "only inline data and files of this server are used, nothing is fetched"
NOT_BASE64 = "not base64"
"""Reasons that every model has."""


def why_not_inline(part: ContentPart) -> str:
    return NO_FILE if handle_of(part) else NOT_INLINE


class DroppedMedia:
    def __init__(self) -> None:
        self.reports: list[MediaDroppedDelta] = []

    def drop(self, message_id: str, index: int, part: ContentPart, reason: str) -> str:
        """Record that part number ``index`` of a message is dropped. Return the note for the model."""
        source = "" if isinstance(part, TextPart) else part.source.type
        logger.warning(
            "content part dropped %s", format_fields({"part": part.type, "source": source, "reason": reason})
        )
        self.reports.append(MediaDroppedDelta(message_id, index, part.type, reason))
        return f"[{part.type} left out: this model cannot be given it]"
