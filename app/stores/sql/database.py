"""Connections and transactions.

Rule: one way in for reads and one for writes, each within ``PATIENCE``, and whatever a driver raises leaves as
``StoreUnavailable``. A read sees one moment. A write of SQLite takes its lock when it begins, and those of one process
stand in line here, because SQLite itself lets whoever waits poll.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from sqlalchemy import URL, Connection, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from app.ports.store import StoreUnavailable

PATIENCE = 10.0
"""Seconds that a read or a write may take, with the wait for a connection."""

GIVE_UP_SECONDS = 1.0
"""Until a second cancellation, after which psycopg no longer waits for the server to hear of the first."""

CONNECTIONS = 10
"""Connections of one process."""

CONNECT_SECONDS = 5


class Database:
    """A database and its transactions.

    Args:
        url: of SQLite or PostgreSQL.
        patience: seconds.
    """

    def __init__(self, url: URL, patience: float = PATIENCE) -> None:
        self.is_sqlite = url.get_backend_name() == "sqlite"
        engine = sqlite(url, patience) if self.is_sqlite else postgresql(url, patience)
        self._engine = engine
        self._writer = engine.execution_options(writes=True)
        self._reader = engine if self.is_sqlite else engine.execution_options(isolation_level="REPEATABLE READ")
        self._line: AbstractAsyncContextManager[None] = asyncio.Lock() if self.is_sqlite else nullcontext()
        self._patience = patience

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Read, as of one moment. Raises ``StoreUnavailable``."""
        async with self._patiently(self._patience), self._reader.connect() as connection:
            yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """Write: all of it, or nothing when something is raised. Raises ``StoreUnavailable``."""
        async with self._patiently(self._patience), self._line, self._writer.begin() as connection:
            yield connection

    @asynccontextmanager
    async def upgrading(self) -> AsyncIterator[AsyncConnection]:
        """``writing``, for as long as it takes. Raises ``StoreUnavailable``."""
        async with self._patiently(None), self._writer.begin() as connection:
            yield connection

    @asynccontextmanager
    async def _patiently(self, seconds: float | None) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(seconds and seconds + GIVE_UP_SECONDS), asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise StoreUnavailable(f"the database did not answer within {seconds} seconds") from error
        except (SQLAlchemyError, OSError) as error:
            raise StoreUnavailable(f"the database failed: {type(error).__name__}") from error

    async def aclose(self) -> None:
        """Close all connections."""
        await self._engine.dispose()


def postgresql(url: URL, patience: float) -> AsyncEngine:
    """An engine for PostgreSQL. What the URL's query says goes to libpq, as ``sslmode`` does."""
    url = url.set(drivername="postgresql+psycopg").update_query_dict(
        {"connect_timeout": str(CONNECT_SECONDS), **url.query}
    )
    return create_async_engine(url, pool_size=CONNECTIONS, max_overflow=0, pool_timeout=patience)


def sqlite(url: URL, patience: float) -> AsyncEngine:
    """An engine for a file of SQLite's."""
    engine = create_async_engine(
        url.set(drivername="sqlite+aiosqlite"),
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=patience,
        connect_args={"timeout": patience / 2, "isolation_level": None},
    )
    event.listen(engine.sync_engine, "connect", _prepare)
    event.listen(engine.sync_engine, "begin", _begin)
    return engine


def _prepare(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    """NORMAL: what is committed survives this process; a loss of power may take the last commits, and no more."""
    cursor = connection.cursor()
    for setting in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _begin(connection: Connection) -> None:
    """The driver begins no transaction by itself; a read that turned into a write could not wait for its lock."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
