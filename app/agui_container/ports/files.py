"""Port of files: bytes that a client uploads once, and that messages name by an id.

Rule: a file belongs to the owner who uploaded it, and nobody else finds it. A store of files keeps bytes as they came.
"""

from typing import BinaryIO, Protocol

from ag_ui.core import ContentPart, FileSource, TextPart
from msgspec import Struct

PROVIDER = "agui"
"""Provider of the handles that this server issues. Handles of other providers pass through unchanged."""


class FileHead(Struct, frozen=True):
    """What is known of a file beside its bytes.

    Attributes:
        id: the handle that messages carry as the ``value`` of a ``file`` source.
        name: name of the file on the client's side.
        mime_type: what the client says that it is.
    """

    id: str
    name: str
    mime_type: str


class File(FileHead, frozen=True):
    """A file with its bytes."""

    data: bytes


class FileStore(Protocol):
    """Files by owner and id. Every method raises ``StoreUnavailable`` if the place of the files does not answer."""

    async def put(self, owner: str, head: FileHead, content: BinaryIO) -> None:
        """Store the rest of ``content`` under a new id."""

    async def get(self, owner: str, file_id: str) -> File | None:
        """Return a file, or None if the owner has none with this id."""

    async def delete(self, owner: str, file_id: str) -> bool:
        """Delete a file. Return True if there was one, as far as the place can tell."""

    async def forget(self, before: float) -> None:
        """Delete the files that were stored before a time in Unix seconds."""

    async def aclose(self) -> None:
        """Release connections and what lasts no longer than the process."""


async def no_file(_file_id: str) -> File | None:
    """Find nothing, where a run has no files."""
    return None


def handle_of(part: ContentPart) -> str | None:
    """Return the id of the file that a content part names, or None for a part without a handle of this server."""
    source = None if isinstance(part, TextPart) else part.source
    return source.value if isinstance(source, FileSource) and source.provider == PROVIDER else None
