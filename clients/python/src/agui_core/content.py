"""Contents of messages and of results: text, and parts with media."""

from collections.abc import Mapping

from ag_ui.core import AudioPart, DataSource, DocumentPart, ImagePart, TextPart, VideoPart

PARTS = (TextPart, ImagePart, AudioPart, VideoPart, DocumentPart)
"""Types of all parts."""

MediaPart = ImagePart | AudioPart | VideoPart | DocumentPart
MEDIA: Mapping[str, type[MediaPart]] = {"image": ImagePart, "audio": AudioPart, "video": VideoPart}
"""Types of parts by the first word of a media type. All other media are documents."""


def media_part(data: str, mime_type: str, name: str | None = None) -> MediaPart:
    """Return the part of a file. ``data`` is base64."""
    source = DataSource(value=data, mime_type=mime_type)
    metadata = {"filename": name} if name else None
    return MEDIA.get(mime_type.partition("/")[0], DocumentPart)(source=source, metadata=metadata)


def text_of(content: object) -> str:
    """Return the text of a content, which is decoded JSON or a model's. Other parts are named by their types."""
    if isinstance(content, list | tuple):
        return "\n".join(map(part_text, content))
    return content if isinstance(content, str) else ""


def part_text(part: object) -> str:
    """Return the text of a part, which is decoded JSON or a model, or the type of a part without text."""
    fields = part if isinstance(part, Mapping) else vars(part)
    text = fields.get("text")
    return text if isinstance(text, str) else f"[{fields.get('type', 'content')}]"
