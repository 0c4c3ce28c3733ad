"""Files in a database, for PostgreSQL. They are written and read as a whole."""

import time
from collections.abc import Callable
from typing import BinaryIO

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from agui_container.ports.files import File, FileHead
from agui_container.stores.sql.database import Database, reads, writes
from agui_container.stores.sql.schema import FILES, digest_of


class SqlFiles:
    """Implements ``FileStore`` in the database of a ``SqlStore``, which opens and closes it."""

    def __init__(self, database: Database, now: Callable[[], float] = time.time) -> None:
        self._database = database
        self._now = now

    @writes
    async def put(self, connection: AsyncConnection, owner: str, head: FileHead, content: BinaryIO) -> None:
        row = {
            "digest": digest_of(owner, head.id),
            "file_id": head.id,
            "name": head.name,
            "mime_type": head.mime_type,
            "created_at": self._now(),
            "data": content.read(),
        }
        await connection.execute(FILES.insert().values(row))

    @reads
    async def get(self, connection: AsyncConnection, owner: str, file_id: str) -> File | None:
        query = select(FILES.c.file_id, FILES.c.name, FILES.c.mime_type, FILES.c.data)
        row = (await connection.execute(query.where(FILES.c.digest == digest_of(owner, file_id)))).one_or_none()
        return None if row is None else File(*row)

    @writes
    async def delete(self, connection: AsyncConnection, owner: str, file_id: str) -> bool:
        found = await connection.execute(delete(FILES).where(FILES.c.digest == digest_of(owner, file_id)))
        return found.rowcount == 1

    @writes
    async def forget(self, connection: AsyncConnection, before: float) -> None:
        await connection.execute(delete(FILES).where(FILES.c.created_at < before))

    async def aclose(self) -> None:
        """Do nothing: the store closes the database."""
