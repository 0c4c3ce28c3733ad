"""Connections and transactions.

Rule: one way in for reads and one for writes, each within ``PATIENCE``, and whatever a driver raises leaves as
``StoreUnavailable``. A transaction that has begun is carried out in a task of its own, whatever becomes of who asked: a
statement that is cut off in SQLite's thread would hold the file's lock for good. A read sees one moment. A write of
SQLite takes its lock when it begins, and those of one process stand in line here, because SQLite itself lets whoever
waits poll.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import wraps
from pathlib import Path
from sqlite3 import OperationalError
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import URL, Connection, event
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from agui_container.ports.store import StoreUnavailable

PATIENCE = 10.0
"""Seconds that a read or a write may take, with the wait for a connection."""

GIVE_UP_SECONDS = 1.0
"""Until a second cancellation, after which psycopg no longer waits for the server to hear of the first."""

CONNECTIONS = 10
"""Connections of one process."""

CONNECT_SECONDS = 5

SILENT_SECONDS = 10
"""A replica that is cut off in the middle of a transaction holds its locks for so long, and PostgreSQL lets go."""

LIBPQ = {
    "connect_timeout": str(CONNECT_SECONDS),
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": str(SILENT_SECONDS * 1000),
}
"""What is asked of libpq: a server that has gone without a word is noticed within seconds."""

WAL_TRIES = 20
"""How often a new SQLite file's journal is asked for, each time behind somebody else's lock."""

P = ParamSpec("P")
T = TypeVar("T")


class Database:
    """A database and its transactions.

    Args:
        url: of SQLite or PostgreSQL.
        patience: seconds.
    """

    def __init__(self, url: URL, retry_policy: float = PATIENCE) -> None:
        self.is_sqlite = url.get_backend_name() == "sqlite"
        engine = sqlite(url, retry_policy) if self.is_sqlite else postgresql(url, retry_policy)
        self._engine = engine
        self._writer = engine.execution_options(writes=True)
        self._reader = engine if self.is_sqlite else engine.execution_options(isolation_level="REPEATABLE READ")
        self._folder = Path(url.database or "").parent if self.is_sqlite else None
        self._line = asyncio.Lock()
        self._retry_policy = retry_policy
        self._work = set[asyncio.Task[object]]()

    async def run_to_end(self, work: Coroutine[object, object, T]) -> T:
        """Do all of it, also where who asked for it is cancelled. Raises what it raises.

        Raises:
            StoreUnavailable: it takes too long, and goes on.
        """
        return await self.with_timeout(self.begin(work))

    def begin(self, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        """Have it done, and come to its end before the database is closed."""
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._done)
        return task

    async def with_timeout(self, future: asyncio.Future[T]) -> T:
        """What becomes of it. Raises ``StoreUnavailable`` where that takes too long; then it goes on."""
        done, _ = await asyncio.wait([future], timeout=self._retry_policy + 2 * GIVE_UP_SECONDS)
        if not done:
            raise StoreUnavailable(f"the database did not answer within {self._retry_policy} seconds")
        return future.result()

    def _done(self, task: asyncio.Task[object]) -> None:
        self._work.discard(task)
        if not task.cancelled():
            task.exception()  # who asked has it, or has left

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Read, as of one moment. Raises ``StoreUnavailable``."""
        async with self._within(), self._reader.connect() as connection:
            yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """Write: all of it, or nothing when something is raised. Raises ``StoreUnavailable``."""
        async with self._within(), self._turn(), self._writer.begin() as connection:
            yield connection

    @asynccontextmanager
    async def upgrading(self) -> AsyncIterator[AsyncConnection]:
        """``writing``, for as long as it takes. Raises ``StoreUnavailable``."""
        if self._folder is not None and not self._folder.is_dir():
            raise StoreUnavailable("there is no such folder")  # the driver's thread would outlive its own failure
        with database_errors():
            async with self._writer.begin() as connection:
                yield connection

    @asynccontextmanager
    async def _within(self) -> AsyncIterator[None]:
        """PostgreSQL may be out of reach; SQLite ends every wait by itself, and must not be cut off."""
        seconds = None if self.is_sqlite else self._retry_policy
        with database_errors():
            async with asyncio.timeout(seconds and seconds + GIVE_UP_SECONDS), asyncio.timeout(seconds):
                yield

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if not self.is_sqlite:
            yield
            return
        async with asyncio.timeout(self._retry_policy):
            await self._line.acquire()
        try:
            yield
        finally:
            self._line.release()

    async def aclose(self) -> None:
        """Let what has begun come to its end, and close all connections."""
        if self._work:
            await asyncio.wait(self._work, timeout=self._retry_policy)
        await self._engine.dispose()


@contextmanager
def database_errors() -> Iterator[None]:
    """Raises ``StoreUnavailable`` for a database that fails or takes too long."""
    try:
        yield
    except TimeoutError as error:
        raise StoreUnavailable("the database did not answer in time") from error
    except (SQLAlchemyError, OSError) as error:
        raise StoreUnavailable(f"the database failed: {type(error).__name__}") from error


class DatabaseUser(Protocol):
    """A part of the store."""

    _database: Database


S = TypeVar("S", bound=DatabaseUser)


def uncancellable(
    method: Callable[Concatenate[S, P], Coroutine[object, object, T]],
) -> Callable[Concatenate[S, P], Coroutine[object, object, T]]:
    """A method that is carried out to its end once it was called."""

    @wraps(method)
    async def carried_out(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._database.run_to_end(method(self, *args, **kwargs))

    return carried_out


def postgresql(url: URL, retry_policy: float) -> AsyncEngine:
    """An engine for PostgreSQL. What the URL's query says goes to libpq, as ``sslmode`` does."""
    url = url.set(drivername="postgresql+psycopg").update_query_dict({**LIBPQ, **url.query})
    engine = create_async_engine(url, pool_size=CONNECTIONS, max_overflow=0, pool_timeout=retry_policy)
    event.listen(engine.sync_engine, "connect", _set_timeouts)
    return engine


def _set_timeouts(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    """As a statement, because poolers between us and the database refuse it as a parameter of the connection."""
    cursor = connection.cursor()
    cursor.execute(f"SET idle_in_transaction_session_timeout = '{SILENT_SECONDS}s'")
    cursor.close()
    connection.commit()


def sqlite(url: URL, retry_policy: float) -> AsyncEngine:
    """An engine for a file of SQLite's."""
    engine = create_async_engine(
        url.set(drivername="sqlite+aiosqlite"),
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=retry_policy,
        connect_args={"timeout": retry_policy / 2, "isolation_level": None},
    )
    event.listen(engine.sync_engine, "connect", _prepare)
    event.listen(engine.sync_engine, "begin", _begin)
    return engine


def _prepare(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    """NORMAL: what is committed survives this process; a loss of power may take the last commits, and no more."""
    cursor = connection.cursor()
    _write_ahead(cursor)
    for setting in ("synchronous = NORMAL", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _write_ahead(cursor: DBAPICursor) -> None:
    """Of several who change a new file's journal at once SQLite lets all but one fail, without any wait."""
    for _ in range(WAL_TRIES):
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except OperationalError:  # a lock, which is waited for, says when the other is done
            cursor.execute("BEGIN IMMEDIATE")
            cursor.execute("ROLLBACK")
        else:
            return
    raise OperationalError("the journal cannot be changed")


def _begin(connection: Connection) -> None:
    """The driver begins no transaction by itself; a read that turned into a write could not wait for its lock."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
