"""Files that a message names: a path that was typed, pasted, or dropped on the terminal."""

import mimetypes
import shlex
from pathlib import Path
from urllib.parse import unquote, urlsplit

SENT = ("image/", "audio/", "video/", "application/pdf")
"""Beginnings of the media types that are sent with a message."""


def files_in(text: str) -> list[Path]:
    """Return the files that a message names and an agent can look at."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quotation mark without its partner
        words = text.split()
    return [path for word in words if (path := as_file(word)) is not None]


def as_file(word: str) -> Path | None:
    """Return the file that a word names, if it is of a type that is sent."""
    path = Path(unquote(urlsplit(word).path)) if word.startswith("file://") else Path(word)
    kind = mimetypes.guess_type(path.name)[0] or ""
    if not kind.startswith(SENT):
        return None
    try:
        path = path.expanduser()
        return path if path.is_file() else None
    except (OSError, RuntimeError):  # a name that is too long, a home folder that nobody has
        return None
