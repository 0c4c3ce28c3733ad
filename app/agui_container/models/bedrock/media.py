"""Content parts of AG-UI as content blocks of Bedrock.

Rules: only bytes that came inline are used; a URL or a file handle is never fetched. What cannot be used is dropped
with a warning and the rest goes on, as AG-UI says. What Bedrock would refuse is dropped too, because a refused part
stays in the history and would end the conversation for good. An image's format is read from its bytes, since Bedrock
refuses a wrong label.
"""

import logging
import re
from collections.abc import Callable, Sequence
from typing import Any

from ag_ui.core import ContentPart, DataSource, DocumentPart, ImagePart, TextPart

from agui_container.models.images import decode_base64, image_kind, image_size

logger = logging.getLogger(__name__)

Block = dict[str, Any]

MAX_IMAGES, MAX_IMAGE_BYTES = 20, 3_932_160
"""Per message; 3.75 MiB, which is 5 MiB in base64."""
MAX_PIXELS = 8000
"""Of an image's width and height."""
MAX_DOCUMENTS, MAX_DOCUMENT_BYTES = 5, 4_718_592
MAX_NAME = 200

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
    """Why a part is dropped, for the log."""


class MediaConverter:
    """Makes the blocks of one request; document names are unique in it."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def blocks(self, content: str | Sequence[ContentPart]) -> list[Block]:
        """The blocks of a message's content; blank text is left out, because Bedrock refuses it."""
        if isinstance(content, str):
            return [{"text": content}] if content.strip() else []
        found = (self._block(part) for part in content)
        return [block for block in found if block is not None]

    def _block(self, part: ContentPart) -> Block | None:
        if isinstance(part, TextPart):
            return {"text": part.text} if part.text.strip() else None
        try:
            return self._medium(part)
        except _Unusable as reason:
            logger.warning("part=<%s> source=<%s> | dropped: %s", part.type, part.source.type, reason)
            return None

    def _medium(self, part: ContentPart) -> Block:
        if isinstance(part, ImagePart):
            return _image(part)
        if isinstance(part, DocumentPart):
            return self._document(part)
        raise _Unusable("only text, images and documents are sent")

    def _document(self, part: DocumentPart) -> Block:
        data = _bytes(part, MAX_DOCUMENT_BYTES)
        kind = DOCUMENT_FORMATS.get(_mime(part))
        if kind is None:
            raise _Unusable("not a kind of document that Bedrock takes")
        return {"document": {"format": kind, "name": self._name(part.metadata), "source": {"bytes": data}}}

    def _name(self, metadata: object) -> str:
        given = metadata.get("filename") or metadata.get("name") if isinstance(metadata, dict) else None
        stem = document_name(given if isinstance(given, str) else "")
        name, number = stem, 1
        while name in self._names:
            number += 1
            name = f"{stem} ({number})"
        self._names.add(name)
        return name


def document_name(given: str) -> str:
    """A name that Bedrock takes, with room for a number behind it. Plain words only: the model reads it."""
    return _NOT_IN_NAMES.sub(" ", given).strip()[: MAX_NAME - 12].strip() or "document"


def _image(part: ImagePart) -> Block:
    data = _bytes(part, MAX_IMAGE_BYTES)
    kind = image_kind(data)
    if kind is None:
        raise _Unusable("not a kind of image that Bedrock takes")
    if max(image_size(kind, data) or (0,)) > MAX_PIXELS:
        raise _Unusable(f"wider or higher than {MAX_PIXELS} pixels")
    return {"image": {"format": kind, "source": {"bytes": data}}}


def _bytes(part: ImagePart | DocumentPart, most: int) -> bytes:
    if not isinstance(part.source, DataSource):
        raise _Unusable("only inline data is used, nothing is fetched")
    value = part.source.value
    if len(value) > 4 * (most // 3 + 1):
        raise _Unusable("too large for Bedrock")
    data = decode_base64(value)
    if data is None:
        raise _Unusable("not base64")
    if not 0 < len(data) <= most:
        raise _Unusable("empty, or too large for Bedrock")
    return data


def _mime(part: DocumentPart) -> str:
    return part.source.mime_type.partition(";")[0].strip().lower() if part.source.mime_type else ""


# --- limits of a whole message ----------------------------------------------------------------------------------------


def limit_media(blocks: Sequence[Block]) -> list[Block]:
    """A user message within Bedrock's limits: the first images and documents are kept, and documents get a text."""
    keep = _MediaLimit(image=MAX_IMAGES, document=MAX_DOCUMENTS)
    kept = [_trimmed(block, keep) for block in blocks if keep(block)]
    if any("document" in block for block in kept) and not any("text" in block for block in kept):
        kept.append({"text": "See the attached document."})
    return kept


def _trimmed(block: Block, keep: Callable[[Block], bool]) -> Block:
    """Limits count what is in tool results, too."""
    if "toolResult" not in block:
        return block
    result = block["toolResult"]
    content = [inner for inner in result["content"] if keep(inner)] or [{"text": ""}]
    return {"toolResult": {**result, "content": content}}


class _MediaLimit:
    """How many blocks of a kind are still allowed; asking uses one up."""

    def __init__(self, **left: int) -> None:
        self._left = left

    def __call__(self, block: Block) -> bool:
        (kind,) = block
        if kind not in self._left:
            return True
        self._left[kind] -= 1
        if self._left[kind] < 0:
            logger.warning("part=<%s> | dropped: more in one message than Bedrock takes", kind)
        return self._left[kind] >= 0
