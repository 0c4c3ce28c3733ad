"""Content as the API takes it: text, images, sound and PDF files.

Rule: only bytes that came with the message go out. A URL would make the provider fetch what a stranger names, and a
handle belongs to whoever issued it: both are left out. So is what the API has no form for, and what servers would
refuse, because it stays in the history: data that is no base64, pictures of other kinds than all can read. The model
reads a note in place of what was left out, so that it can say so, and the log has a warning.
"""

import logging
from collections.abc import Mapping, Sequence

from ag_ui.core import AudioPart, ContentPart, DataSource, DocumentPart, ImagePart, TextPart

from app.models.inline import decoded, picture_kind

logger = logging.getLogger(__name__)

Json = Mapping[str, object]

_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def content_of(content: str | Sequence[ContentPart]) -> str | list[Json]:
    """A user's content. Without media it is one string, which every server understands."""
    if isinstance(content, str):
        return content
    parts = [_part(part) for part in content]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(str(part["text"]) for part in parts)
    return parts


def text_of(content: str | Sequence[ContentPart]) -> str:
    """A tool's content, which can be nothing but text."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text if isinstance(part, TextPart) else _note(part) for part in content)


def _part(part: ContentPart) -> Json:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    return _media(part) or {"type": "text", "text": _note(part)}


def _media(part: ContentPart) -> Json | None:
    if isinstance(part, TextPart) or not isinstance(part.source, DataSource):
        return None
    value, kind = part.source.value, part.source.mime_type.partition(";")[0].strip().lower()
    data = decoded(value)
    if not data:
        return None
    if isinstance(part, ImagePart):
        picture = picture_kind(data)
        return {"type": "image_url", "image_url": {"url": f"data:image/{picture};base64,{value}"}} if picture else None
    if isinstance(part, AudioPart) and kind in _SOUNDS:
        return {"type": "input_audio", "input_audio": {"data": value, "format": _SOUNDS[kind]}}
    if isinstance(part, DocumentPart) and kind == "application/pdf":
        url = f"data:application/pdf;base64,{value}"
        return {"type": "file", "file": {"filename": "document.pdf", "file_data": url}}
    return None


def _note(part: ContentPart) -> str:
    source = "" if isinstance(part, TextPart) else part.source.type
    logger.warning("part=<%s> source=<%s> | left out what the model cannot be given", part.type, source)
    return f"[{part.type} left out: this model cannot be given it]"
