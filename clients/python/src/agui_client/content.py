"""Messages of the user: text, and files from paths or bytes as content parts."""

import base64
import mimetypes
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from ag_ui.core import (
    AudioPart,
    ContentPart,
    DataSource,
    DocumentPart,
    ImagePart,
    TextPart,
    UserMessage,
    VideoPart,
)

SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
"""First bytes of the types that are told apart without a name."""

KINDS: dict[str, type[ImagePart | AudioPart | VideoPart]] = {"image": ImagePart, "audio": AudioPart, "video": VideoPart}

File = Path | str | bytes | ContentPart
"""A path, the bytes of a file, or a content part."""


def user_message(text: str, files: Iterable[File] = ()) -> UserMessage:
    """Make a message of the user. Raises as ``attachment``."""
    parts = [attachment(file) for file in files]
    content: str | list[ContentPart] = [TextPart(text=text), *parts] if parts else text
    return UserMessage(id=str(uuid4()), content=content)


def attachment(file: File, mime_type: str | None = None) -> ContentPart:
    """Make the content part of a file.

    Args:
        file: a path, or the bytes of a file.
        mime_type: where neither the name nor the first bytes tell it.

    Raises:
        OSError: the file cannot be read.
        ValueError: the type of the file is not known.
    """
    if not isinstance(file, Path | str | bytes):
        return file
    data = file if isinstance(file, bytes) else Path(file).read_bytes()
    guessed = None if isinstance(file, bytes) else mimetypes.guess_type(str(file))[0]
    mime = mime_type or guessed or _recognised(data)
    if mime is None:
        raise ValueError(f"The type of {'these bytes' if isinstance(file, bytes) else file} is not known: mime_type.")
    source = DataSource(value=base64.b64encode(data).decode(), mime_type=mime)
    kind = KINDS.get(mime.partition("/")[0])
    return kind(source=source) if kind else DocumentPart(source=source)


def _recognised(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for signature, mime in SIGNATURES if data.startswith(signature)), None)
