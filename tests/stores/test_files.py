"""One contract for every place of files: a folder, a temporary one, a database. test_s3_files.py has S3."""

import asyncio
import os
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import pytest
from sqlalchemy import make_url

from agui_container.ports.files import File, FileHead, FileStore
from agui_container.ports.store import StoreUnavailable
from agui_container.stores import open_store
from agui_container.stores.files import open_files
from agui_container.stores.files.folder import FolderFiles
from agui_container.stores.sql.files import SqlFiles
from agui_container.stores.sql.store import SqlStore

HEAD = FileHead("f1", "a b\n☃.png", "image/png")
DATA = bytes(range(256)) + b"\n" * 3


@pytest.fixture(params=["folder", "temporary", "sqlite", pytest.param("postgres", marks=pytest.mark.services)])
async def files(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[FileStore]:
    match request.param:
        case "folder":
            yield FolderFiles(tmp_path / "not" / "yet")
        case "temporary":
            opened = open_files("", "memory", open_store("memory"))
            assert opened is not None
            yield opened
            await opened.aclose()
        case name:
            store = SqlStore(make_url(request.getfixturevalue(f"{name}_url")))
            await store.open()
            yield SqlFiles(store.database)
            await store.aclose()


async def put(files: FileStore, owner: str = "me", head: FileHead = HEAD, data: bytes = DATA) -> None:
    await files.put(owner, head, BytesIO(data))


@pytest.mark.parametrize(("owner", "file_id"), [("me", "f2"), ("you", "f1"), ("mef", "1"), ("me", "../f1"), ("", "")])
async def test_nobody_else_and_nothing_else_is_found(files: FileStore, owner: str, file_id: str) -> None:
    await put(files)
    assert await files.get(owner, file_id) is None
    assert not await files.delete(owner, file_id)
    assert await files.get("me", "f1") == File("f1", HEAD.name, HEAD.mime_type, DATA)


async def test_a_deleted_file_is_gone(files: FileStore) -> None:
    await put(files)
    assert await files.delete("me", "f1")
    assert await files.get("me", "f1") is None
    assert not await files.delete("me", "f1")


async def test_old_files_are_forgotten(files: FileStore) -> None:
    await files.forget(1e12)  # nothing is stored yet
    await put(files)
    await files.forget(1e9)
    assert await files.get("me", "f1") is not None
    await files.forget(1e12)
    assert await files.get("me", "f1") is None


async def test_a_folder_shows_no_half_of_a_file_and_no_name_of_a_client(tmp_path: Path) -> None:
    class Breaks(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(28, "No space left on device")

    files = FolderFiles(tmp_path / "files")
    with pytest.raises(StoreUnavailable, match="No space left"):
        await files.put("me", HEAD, Breaks())
    assert os.listdir(tmp_path / "files") == []  # noqa: PTH208 - names, not paths
    await put(files)
    (name,) = os.listdir(tmp_path / "files")  # noqa: PTH208
    assert len(name) == 64


async def test_all_of_the_first_files_that_come_at_once_are_kept() -> None:
    heads = [FileHead(name, name, "image/png") for name in "abcdefgh"]
    for _ in range(100):
        files = FolderFiles()
        await asyncio.gather(*[put(files, head=head) for head in heads])
        assert [file and file.id for file in [await files.get("me", head.id) for head in heads]] == list("abcdefgh")
        await files.aclose()


async def test_a_temporary_folder_ends_with_the_process() -> None:
    files = FolderFiles()
    await put(files)
    await files.aclose()
    assert await files.get("me", "f1") is None


@pytest.mark.parametrize(
    ("place", "store", "expected"),
    [
        ("", "memory", "FolderFiles"),
        ("", "sqlite:////tmp/a%20b.db?x=1", "FolderFiles"),
        ("", "agentcore-memory:chats-0123456789", "NoneType"),
        ("off", "memory", "NoneType"),
        ("~/files", "agentcore-memory:chats-0123456789", "FolderFiles"),
    ],
)
def test_a_place_follows_from_the_settings(place: str, store: str, expected: str) -> None:
    assert type(open_files(place, store, open_store("memory"))).__name__ == expected


@pytest.mark.parametrize(("place", "message"), [("https://x/y", "must be a folder"), ("s3:///x", "names no bucket")])
def test_a_place_that_is_none_is_refused(place: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_files(place, "memory", open_store("memory"))
