"""Files in a folder. Each is one file of the system: a line of JSON with what is known of it, and then its bytes.

Rule: a name in the folder is a digest of owner and id, so no name of a client's becomes a path. A file appears under
its name once it is whole. Blocking calls run in threads.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec
from anyio import to_thread

from agui_container.ports.files import File, FileHead
from agui_container.ports.store import StoreUnavailable

T = TypeVar("T")


class FolderFiles:
    """Implements ``FileStore`` in a folder, which is made with the first file. None is a temporary one."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._making = threading.Lock()

    async def put(self, owner: str, head: FileHead, content: BinaryIO) -> None:
        await self._in_thread(lambda: self._write(owner, head, content))

    async def get(self, owner: str, file_id: str) -> File | None:
        folder = self._folder
        return None if folder is None else await self._in_thread(lambda: _read(_path(folder, owner, file_id)))

    async def delete(self, owner: str, file_id: str) -> bool:
        folder = self._folder
        return folder is not None and await self._in_thread(lambda: _unlink(_path(folder, owner, file_id)))

    async def forget(self, before: float) -> None:
        folder = self._folder
        if folder is not None:
            await self._in_thread(lambda: _forget(folder, before))

    async def aclose(self) -> None:
        if self._temporary is not None:
            await to_thread.run_sync(self._temporary.cleanup)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await to_thread.run_sync(work)
        except OSError as error:
            raise StoreUnavailable(f"the folder of files: {error}") from error

    def _open_folder(self) -> Path:
        with self._making:  # the first files may come at once
            if self._folder is None:
                self._temporary = tempfile.TemporaryDirectory(prefix="agui-files-")
                self._folder = Path(self._temporary.name)
            return self._folder

    def _write(self, owner: str, head: FileHead, content: BinaryIO) -> None:
        path = _path(self._open_folder(), owner, head.id)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(head) + b"\n")
                shutil.copyfileobj(content, file)
            Path(partial).replace(path)
        except BaseException:
            Path(partial).unlink()
            raise


def _path(folder: Path, owner: str, file_id: str) -> Path:
    return folder / sha256(msgspec.json.encode([owner, file_id])).hexdigest()


def _read(path: Path) -> File | None:
    try:
        line, _, data = path.read_bytes().partition(b"\n")
    except FileNotFoundError:
        return None
    head = msgspec.json.decode(line, type=FileHead)
    return File(head.id, head.name, head.mime_type, data)


def _forget(folder: Path, before: float) -> None:
    with suppress(FileNotFoundError):
        for entry in os.scandir(folder):
            with suppress(FileNotFoundError):  # another process may delete it at the same time
                if entry.is_file(follow_symlinks=False) and entry.stat().st_mtime < before:
                    Path(entry).unlink()


def _unlink(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
