"""Messages of the user: text, and files from paths or bytes as content parts.

Rule: a large file is uploaded before its message is sent, if the server keeps files. The message names it then, so that
its bytes are sent once, and not with each turn.
"""

import base64
import mimetypes
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from ag_ui.core import ContentPart, DataSource, FileSource, Message, TextPart, UserMessage

from agui_client.errors import UnsupportedError
from agui_client.server import Server
from agui_core.content import media_part

SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
"""First bytes of the types that are told apart without a name."""

INLINE = 4 * 65_536 // 3
"""Characters of base64 up to which a file stays in its message."""

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
    return media_part(base64.b64encode(data).decode(), mime, None if isinstance(file, bytes) else Path(file).name)


async def uploaded(message: Message, server: Server) -> Message:
    """Return the message of a user with its large files uploaded, or as it is if the server keeps no files.

    Raises as ``Server.command``, for example because of the size of a file.
    """
    if not isinstance(message, UserMessage) or isinstance(message.content, str):
        return message
    try:
        return message.model_copy(update={"content": [await _uploaded(part, server) for part in message.content]})
    except UnsupportedError:
        return message


async def _uploaded(part: ContentPart, server: Server) -> ContentPart:
    if isinstance(part, TextPart) or not isinstance(part.source, DataSource) or len(part.source.value) <= INLINE:
        return part
    name = part.metadata.get("filename") if isinstance(part.metadata, dict) else None
    data, mime = part.source.value, part.source.mime_type
    stored = await server.command("files.put", data=data, mimeType=mime, name=str(name or "")[-200:])
    source = FileSource(value=str(stored["fileId"]), provider="agui", mime_type=mime)
    return part.model_copy(update={"source": source})


def _recognised(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for signature, mime in SIGNATURES if data.startswith(signature)), None)
