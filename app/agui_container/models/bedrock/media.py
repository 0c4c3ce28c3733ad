"""Content parts of AG-UI as content blocks of Bedrock.

Rules: only inline bytes are sent; URLs and file handles are never fetched. Unusable parts are dropped and the rest of
the message is sent, as AG-UI requires. Parts that Bedrock would refuse are dropped too, because a refused part stays in
the history and would make every later request fail. The model reads a note in place of each of them. An image's format
is read from its bytes, because Bedrock refuses a wrong label.

Source of the limits: ImageBlock, DocumentBlock and Message in the Amazon Bedrock Runtime API reference.
"""

import re
from collections.abc import Sequence
from typing import Any

from ag_ui.core import ContentPart, DataSource, DocumentPart, ImagePart, TextPart
from msgspec import Struct

from agui_container.models.media import (
    NOT_BASE64,
    DroppedMedia,
    decode_base64,
    image_kind,
    image_size,
    is_text,
    why_not_inline,
)

Block = dict[str, Any]

MAX_IMAGES, MAX_IMAGE_BYTES = 20, 3_932_160
"""Images per message, and bytes per image: 3.75 MiB, or 5 MiB in base64."""
MAX_PIXELS = 8000
"""Largest width and height of an image."""
MAX_DOCUMENTS, MAX_DOCUMENT_BYTES = 5, 4_718_592
"""Documents per message, and bytes per document: 4.5 MiB."""
TOO_MANY = f"more than {MAX_IMAGES} images or {MAX_DOCUMENTS} documents in one message"
IN_FAILED_RESULT = "only text is sent in a failed result"
MAX_NAME = 200
"""Characters of a document's name."""

_OFFICE = "application/vnd.openxmlformats-officedocument"
DOCUMENT_FORMATS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    f"{_OFFICE}.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    f"{_OFFICE}.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9\-()\[\]]+")


class _Unusable(Exception):
    """A part cannot be sent. The text is the reason, for the log and the client."""


class _Place(Struct, frozen=True):
    message_id: str
    index: int
    part: ContentPart


class MediaConverter:
    """Converter of the content parts of one request. Document names are unique within the request."""

    def __init__(self) -> None:
        self.dropped = DroppedMedia()
        self._names: set[str] = set()
        self._places: dict[int, _Place] = {}
        """Place of each block of media, by the identity of the block."""

    def blocks(self, message_id: str, content: str | Sequence[ContentPart]) -> list[Block]:
        """Return the blocks of a message's content. Blank text is left out, because Bedrock refuses it."""
        if isinstance(content, str):
            return [{"text": content}] if content.strip() else []
        blocks = (self._block(_Place(message_id, index, part)) for index, part in enumerate(content))
        return [block for block in blocks if block is not None]

    def drop(self, block: Block, reason: str) -> Block:
        place = self._places[id(block)]
        return {"text": self.dropped.drop(place.message_id, place.index, place.part, reason)}

    def _block(self, place: _Place) -> Block | None:
        part = place.part
        if isinstance(part, TextPart):
            return {"text": part.text} if part.text.strip() else None
        try:
            block = self._media_block(part)
        except _Unusable as reason:
            return {"text": self.dropped.drop(place.message_id, place.index, part, str(reason))}
        self._places[id(block)] = place
        return block

    def _media_block(self, part: ContentPart) -> Block:
        if isinstance(part, ImagePart):
            return _image(part)
        if isinstance(part, DocumentPart):
            return self._document(part)
        raise _Unusable("only text, images and documents are sent")

    def _document(self, part: DocumentPart) -> Block:
        data = _bytes(part, MAX_DOCUMENT_BYTES)
        mime_type = _mime(part)
        kind = DOCUMENT_FORMATS.get(mime_type) or ("txt" if is_text(mime_type) else None)
        if kind is None:
            raise _Unusable("no document format that Bedrock accepts")
        return {"document": {"format": kind, "name": self._name(part.metadata), "source": {"bytes": data}}}

    def _name(self, metadata: object) -> str:
        filename = metadata.get("filename") or metadata.get("name") if isinstance(metadata, dict) else None
        stem = document_name(filename if isinstance(filename, str) else "")
        name, number = stem, 1
        while name in self._names:
            number += 1
            name = f"{stem} ({number})"
        self._names.add(name)
        return name


def document_name(filename: str) -> str:
    """Return a name that Bedrock accepts, with room for a number behind it. Plain words only: the model reads it."""
    return _NOT_IN_NAMES.sub(" ", filename).strip()[: MAX_NAME - 12].strip() or "document"


def _image(part: ImagePart) -> Block:
    data = _bytes(part, MAX_IMAGE_BYTES)
    kind = image_kind(data)
    if kind is None:
        raise _Unusable("no image format that Bedrock accepts")
    if max(image_size(kind, data) or (0,)) > MAX_PIXELS:
        raise _Unusable(f"wider or higher than {MAX_PIXELS} pixels")
    return {"image": {"format": kind, "source": {"bytes": data}}}


def _bytes(part: ImagePart | DocumentPart, max_bytes: int) -> bytes:
    if not isinstance(part.source, DataSource):
        raise _Unusable(why_not_inline(part))
    value = part.source.value
    if len(value) > 4 * (max_bytes // 3 + 1):
        raise _Unusable("too large for Bedrock")
    data = decode_base64(value)
    if data is None:
        raise _Unusable(NOT_BASE64)
    if not 0 < len(data) <= max_bytes:
        raise _Unusable("empty, or too large for Bedrock")
    return data


def _mime(part: DocumentPart) -> str:
    return part.source.mime_type.partition(";")[0].strip().lower() if part.source.mime_type else ""


# --- limits of a whole message ----------------------------------------------------------------------------------------


def limit_media(blocks: Sequence[Block], converter: MediaConverter) -> list[Block]:
    """Reduce the blocks of a user message to Bedrock's limits.

    The first images and documents stay, also those in tool results. A message with documents gets a text block if it
    has none, because Bedrock requires one.
    """
    limit = _MediaLimit(converter, image=MAX_IMAGES, document=MAX_DOCUMENTS)
    limited = [limit(block) for block in blocks]
    if any("document" in block for block in limited) and not any("text" in block for block in limited):
        limited.append({"text": "See the attached document."})
    return limited


class _MediaLimit:
    def __init__(self, converter: MediaConverter, **remaining: int) -> None:
        self._converter = converter
        self._remaining = remaining

    def __call__(self, block: Block) -> Block:
        (kind,) = block
        if kind == "toolResult":
            result = block[kind]
            return {kind: {**result, "content": [self(inner) for inner in result["content"]]}}
        if kind not in self._remaining:
            return block
        self._remaining[kind] -= 1
        return block if self._remaining[kind] >= 0 else self._converter.drop(block, TOO_MANY)
