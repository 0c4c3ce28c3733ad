"""Content parts of a kind that AG-UI 1.0 has: the retired ``binary`` is translated, and any other kind is left out.

Rule: what is not recognised does not make an input invalid, and what is left out is told; a known part with a wrong
value stays, to be refused. Sources: AG-UI spec 1.1, basic/processing and basic/run-input; the official client's
``legacy-content``.
"""

from collections.abc import Callable
from typing import Any

MEDIA = frozenset({"image", "audio", "video"})
KINDS = MEDIA | {"text", "document"}

SHOWN = 32
"""Characters of a kind that nobody knows."""

Tell = Callable[[str], None]
"""Takes a sentence for the log."""


def renew(messages: object, tell: Tell) -> None:
    """Make the parts of these messages such parts, in place."""
    strange: list[str] = []
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and isinstance(message.get("content"), list):
            message["content"] = [part for old in message["content"] if (part := _renewed(old, strange)) is not None]
    if strange:
        tell(f"{len(strange)} content parts of unknown types are left out, the first of {strange[0][:SHOWN]!r}")


def _renewed(part: Any, strange: list[str]) -> Any:  # noqa: ANN401 - any JSON
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind in KINDS:
        return part
    media = _media(part) if kind == "binary" else None
    if media is None:
        strange.append(kind)
    return media


def _media(part: dict[str, Any]) -> dict[str, Any] | None:
    """An image, audio, video or document; None where only the application knows where its bytes are."""
    mime_type = part.get("mimeType")
    name = next((name for name in ("data", "url") if part.get(name)), None)
    if name is None or not isinstance(mime_type, str):
        return None
    kind = mime_type.partition("/")[0]
    media = {"type": kind if kind in MEDIA else "document"}
    filename = {"metadata": {"filename": part["filename"]}} if part.get("filename") else {}
    return {**media, "source": {"type": name, "value": part[name], "mimeType": mime_type}, **filename}
