"""Files of callers: stored once, read by models and agents, and deleted with their thread or after a time.

Rules:

- A file belongs to the owner of the caller who has stored it. For everybody else it does not exist.
- A thread has the files that its messages name. They are deleted with it, before the store forgets the messages. Those
  of a fork and of its origin are deleted with the last thread that names them.
- No timer deletes old files: whoever stores one looks for them, at most once an hour.
"""

import asyncio
import base64
import mimetypes
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BytesIO
from typing import BinaryIO

from ag_ui.core import ToolMessage, UserMessage

from agui_container.engine.views import View
from agui_container.ports import Caller, Clock
from agui_container.ports.files import PROVIDER, File, FileHead, FileStore, handle_of
from agui_container.ports.records import ThreadDelta, ThreadKey
from agui_container.ports.store import Store, store_errors_as_app_errors
from agui_container.protocol.client_input import plain_base64
from agui_container.protocol.errors import AppError, ErrorCode, validation_error
from agui_container.protocol.parser import MESSAGE
from agui_core.commands import FileCommand, FilesDelete, FilesGet, FilesPut

KEPT_SECONDS = 30 * 24 * 3600.0
"""Age after which a file is deleted."""

LOOK_SECONDS = 3600.0
"""Shortest time between two looks for old files."""

DEFAULT_TYPE = "application/octet-stream"
UNKNOWN_TYPES = ("", DEFAULT_TYPE, "application/x-www-form-urlencoded")
"""Types that say nothing: curl's for any bytes is the last one. Then the name says what the file is."""
MIME_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}")
NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f/\\]+")
MAX_NAME = 200
"""Characters of a name that are kept."""

PIECE = 400_000
"""Characters of base64 that are decoded at a time: a multiple of 4."""


def file_not_found() -> AppError:
    return AppError(ErrorCode.FILE_NOT_FOUND, "There is no such file.")


class Files:
    """The files of one process. ``files`` is None where there is no place for them."""

    def __init__(self, files: FileStore | None, store: Store, clock: Clock, new_id: Callable[[], str]) -> None:
        self._files = files
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._looked_at = 0.0

    async def put(self, caller: Caller, name: str, mime_type: str, content: BinaryIO) -> View:
        """Store what is left of ``content``. Return the JSON object of the answer.

        Raises:
            AppError: VALIDATION_ERROR for an empty file, a wrong type, or a server without a place for files;
                STORE_UNAVAILABLE.
        """
        kind = mime_type.partition(";")[0].strip().lower()
        if kind in UNKNOWN_TYPES:
            kind = mimetypes.guess_type(name)[0] or DEFAULT_TYPE
        if not MIME_TYPE.fullmatch(kind):
            raise validation_error("mimeType: must be a type and a subtype, such as image/png.")
        size = content.seek(0, 2)
        content.seek(0)
        if not size:
            raise validation_error("data: the file is empty.")
        head = FileHead(self._new_id(), NOT_IN_NAMES.sub(" ", name).strip()[-MAX_NAME:], kind)
        files = self._place()
        with store_errors_as_app_errors():
            await files.put(caller.owner, head, content)
            await self._forget(files)
        return {**_view(head), "bytes": size}

    async def get(self, owner: str, file_id: str) -> File | None:
        """Return a file of an owner, or None. Raises ``AppError`` STORE_UNAVAILABLE."""
        if self._files is None:
            return None
        with store_errors_as_app_errors():
            return await self._files.get(owner, file_id)

    async def read(self, caller: Caller, file_id: str) -> File:
        """Return a file of the caller. Raises ``AppError`` FILE_NOT_FOUND or STORE_UNAVAILABLE."""
        file = await self.get(caller.owner, file_id)
        if file is None:
            raise file_not_found()
        return file

    async def answer(self, caller: Caller, command: FileCommand) -> View:
        """Execute a command. Raises as ``put`` and ``read``."""
        match command:
            case FilesPut():
                data = plain_base64(command.data)
                if data is None:
                    raise validation_error("data: must be base64.")
                return await self.put(caller, command.name, command.mime_type, await _decoded(data))
            case FilesGet():
                file = await self.read(caller, command.file_id)
                return {**_view(file), "bytes": len(file.data), "data": base64.b64encode(file.data).decode()}
            case FilesDelete():
                with store_errors_as_app_errors():
                    if not await self._place().delete(caller.owner, command.file_id):
                        raise file_not_found()
                return {"id": command.file_id, "fileId": command.file_id, "deleted": True}

    async def forget_thread(self, thread: ThreadKey) -> None:
        """Delete the files that this thread names alone. Raises ``StoreUnavailable``."""
        delta = None if self._files is None else await self._store.thread(thread)
        if self._files is None or delta is None:
            return
        named, page = _handles_in(delta), None
        while named:
            others = await self._store.threads(thread.owner, page=page)
            for other in others.items:
                if other.key != thread and (other.forked_from or delta.thread.forked_from):
                    named -= _handles_in(await self._store.thread(other.key))
            if (page := others.next) is None:
                break
        for file_id in named:
            await self._files.delete(thread.owner, file_id)

    async def _forget(self, files: FileStore) -> None:
        now = self._clock.time()
        if not 0 <= now - self._looked_at < LOOK_SECONDS:  # also if the clock of the machine was set back
            self._looked_at = now
            await files.forget(now - KEPT_SECONDS)

    def _place(self) -> FileStore:
        if self._files is None:
            raise validation_error("This server has no place for files (AGUI_FILES).")
        return self._files


async def _decoded(data: str) -> BinaryIO:
    """Decode base64 in pieces, so that a large file does not stop other runs."""
    content = BytesIO()
    for at in range(0, len(data), PIECE):
        content.write(base64.b64decode(data[at : at + PIECE]))
        await asyncio.sleep(0)
    return content


def _handles_in(delta: ThreadDelta | None) -> set[str]:
    return {handle for stored in (delta.messages if delta else ()) for handle in _handles(stored.data)}


def _handles(data: bytes) -> Iterator[str]:
    if PROVIDER.encode() not in data:
        return
    with suppress(ValueError):
        message = MESSAGE.validate_json(data)
        if isinstance(message, UserMessage | ToolMessage) and not isinstance(message.content, str):
            yield from filter(None, map(handle_of, message.content))


def _view(head: FileHead) -> View:
    """Give the id under the name that commands take, too: a frame of a socket has the request's ``id``."""
    return {"id": head.id, "fileId": head.id, "name": head.name, "mimeType": head.mime_type}
