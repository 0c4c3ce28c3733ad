"""Places for files: a folder, PostgreSQL, or a bucket of S3.

Rule: without ``AGUI_FILES``, files are kept beside the threads: in a folder beside the file of SQLite, in PostgreSQL,
or in a temporary folder beside a store in memory. AgentCore Memory has no place for them.
"""

from pathlib import Path
from urllib.parse import unquote

from agui_container.ports.files import FileStore
from agui_container.ports.store import Store
from agui_container.stores.files.folder import FolderFiles

OFF = "off"
SQLITE = "sqlite:///"
BUCKET = "s3://"
SUFFIX = ".files"


def open_files(place: str, store_url: str, store: Store) -> FileStore | None:
    """Return the place that ``AGUI_FILES`` names, or the default for a store, if any. Raises ``ValueError``."""
    if place:
        return None if place == OFF else _named(place)
    if store_url == "memory":
        return FolderFiles()
    if store_url.startswith(SQLITE):
        return FolderFiles(Path(unquote(store_url.removeprefix(SQLITE).partition("?")[0]) + SUFFIX))
    if store_url.startswith("postgresql:"):
        from agui_container.stores.sql.files import SqlFiles  # noqa: PLC0415 - imported only if it is used
        from agui_container.stores.sql.store import SqlStore  # noqa: PLC0415

        return SqlFiles(store.database) if isinstance(store, SqlStore) else None
    return None


def _named(place: str) -> FileStore:
    if not place.startswith(BUCKET):
        if "://" in place:
            raise ValueError("must be a folder, s3://BUCKET/PREFIX or off")
        return FolderFiles(Path(place).expanduser())
    bucket, _, prefix = place.removeprefix(BUCKET).partition("/")
    if not bucket:
        raise ValueError("names no bucket")
    from agui_container.stores.files.s3 import S3Files  # noqa: PLC0415 - imports boto3

    return S3Files(bucket, prefix)
