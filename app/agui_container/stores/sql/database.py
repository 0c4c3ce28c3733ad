"""Connections and transactions of one database.

Rule: every method of the store is decorated with ``reads`` or ``writes``. Each has a timeout, and every error of a
driver becomes ``StoreUnavailable``. Its text names the host or the file and the driver's reason, but never the
statement, whose values are the conversation. A transaction runs to its end in a task of its own even if its caller is
cancelled, because a statement that is cut off in SQLite's thread would keep the file locked. A read sees one snapshot.
A write to SQLite takes the file's lock when it begins. The writes of one process queue for a lock here, because SQLite
itself only polls for the file's lock.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import URL, Connection, event
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from agui_container.ports.store import StoreUnavailable
from agui_container.telemetry.instruments import STORE_DURATION, CallTimer

TIMEOUT_SECONDS = 10.0
"""Limit of one read or write in PostgreSQL, including the wait for a connection."""

FILE_SECONDS = 60.0
"""Limit of one read or write in a SQLite file. A busy disk may take half of it to write what SQLite waits for, and
there is no other server that could answer earlier."""

GIVE_UP_SECONDS = 1.0
"""Seconds between the first and the second cancellation of a statement. After the second, psycopg stops waiting for the
server to confirm the first."""

CONNECTIONS = 10
"""Maximum number of connections of one process."""

CONNECT_SECONDS = 5

SILENT_SECONDS = 10
"""Seconds after which PostgreSQL ends the transaction of a client that is silent, and releases its locks."""

LIBPQ = {
    "connect_timeout": str(CONNECT_SECONDS),
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": str(SILENT_SECONDS * 1000),
}
"""Connection parameters of libpq. With them, a server that vanished is detected within seconds."""

PREPARED = "prepared"
"""Query parameter of a URL: ``off`` for a pooler that gives each transaction any of its connections, because a prepared
statement belongs to one connection."""

POOLER_ERRORS = ("DuplicatePreparedStatement", "InvalidSqlStatementName")
POOLER_HINT = "; behind a pooler in transaction mode, such as PgBouncer, add ?prepared=off to the URL"

MAX_REASON = 300
"""Characters of a driver's reason."""

WAL_TRIES = 20
"""Maximum number of attempts to switch a new SQLite file to WAL while other connections hold its lock."""

P = ParamSpec("P")
T = TypeVar("T")


class Database:
    """A database and its transactions. ``timeout`` is in seconds; None is that of the kind of database."""

    def __init__(self, url: URL, timeout: float | None = None) -> None:
        self.is_sqlite = url.get_backend_name() == "sqlite"
        timeout = timeout or (FILE_SECONDS if self.is_sqlite else TIMEOUT_SECONDS)
        engine = create_sqlite_engine(url, timeout) if self.is_sqlite else create_postgresql_engine(url, timeout)
        self._engine = engine
        self._writer = engine.execution_options(writes=True)
        self._reader = engine if self.is_sqlite else engine.execution_options(isolation_level="REPEATABLE READ")
        self._file = Path(url.database or "") if self.is_sqlite else None
        self._file_id: tuple[int, int] | None = None
        self._name = (
            f"the database file {self._file}" if self._file else f"the database at {url.host}:{url.port or 5432}"
        )
        self._system = url.get_backend_name()
        self._write_lock = asyncio.Lock()
        self._timeout = timeout
        self._tasks = set[asyncio.Task[object]]()
        self._is_open = False

    async def run_to_end(self, work: Coroutine[object, object, T]) -> T:
        """Run ``work`` to its end, even if the caller is cancelled. Raises ``StoreUnavailable`` after the timeout."""
        return await self.with_timeout(self.start_task(work))

    def start_task(self, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        """Start ``work`` as a task, for which ``aclose`` waits. Raises ``StoreUnavailable`` unless it is open."""
        if not self._is_open:
            work.close()
            raise StoreUnavailable(f"{self._name} is not open")
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(mark_retrieved)
        return task

    async def with_timeout(self, future: asyncio.Future[T]) -> T:
        """Return the result of ``future``. Raises ``StoreUnavailable`` after the timeout, without cancelling it."""
        done, _ = await asyncio.wait([future], timeout=self._timeout + 2 * GIVE_UP_SECONDS)
        if not done:
            raise StoreUnavailable(f"{self._name} did not answer within {self._timeout:g} seconds")
        return future.result()

    @asynccontextmanager
    async def read_transaction(self) -> AsyncIterator[AsyncConnection]:
        """Open a connection that reads one snapshot. Raises ``StoreUnavailable``."""
        self._check_file()
        with CallTimer(STORE_DURATION, self._system, "read"):
            async with self._apply_timeout(), self._reader.connect() as connection:
                yield connection

    @asynccontextmanager
    async def write_transaction(self) -> AsyncIterator[AsyncConnection]:
        """Open a transaction for writing. An exception rolls it back. Raises ``StoreUnavailable``."""
        self._check_file()
        with CallTimer(STORE_DURATION, self._system, "write"):
            async with self._apply_timeout(), self._writer_slot(), self._writer.begin() as connection:
                yield connection

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AsyncConnection]:
        """Open the database with a transaction that migrates it and has no timeout. Raises ``StoreUnavailable``."""
        if self._file is not None:
            self._check_can_open(self._file)
        with self._database_errors():
            async with self._writer.begin() as connection:
                if self.is_sqlite:  # BEGIN succeeds for a file that may only be read
                    await connection.exec_driver_sql("PRAGMA user_version = 0")
                yield connection
        if self._file is not None:
            self._file_id = file_id(self._file)
        self._is_open = True

    def _check_can_open(self, file: Path) -> None:
        """Open the file once here. If the driver could not open it, its thread would stay and fail after the loop."""
        if not file.parent.is_dir():
            raise StoreUnavailable(f"there is no folder {file.parent}")
        if str(file).startswith("file:"):  # a URI of SQLite's, which the driver opens with other options
            return
        try:
            sqlite3.connect(file).close()
        except sqlite3.Error as error:
            raise StoreUnavailable(f"{self._name} failed: {reason_of(error)}") from error

    def _check_file(self) -> None:
        """Check that the file is still the one that was opened, because SQLite would continue with a deleted file.

        Raises:
            StoreUnavailable: the file was deleted or replaced. It is used again once it is back.
        """
        if self._file is not None and self._file_id is not None and file_id(self._file) != self._file_id:
            raise StoreUnavailable(f"{self._name} was deleted or replaced; put it back, or start the server again")

    @asynccontextmanager
    async def _apply_timeout(self) -> AsyncIterator[None]:
        """Apply the timeout. SQLite has none here, because it ends every wait itself and must not be cut off."""
        seconds = None if self.is_sqlite else self._timeout
        with self._database_errors():
            async with asyncio.timeout(seconds and seconds + GIVE_UP_SECONDS), asyncio.timeout(seconds):
                yield

    @asynccontextmanager
    async def _writer_slot(self) -> AsyncIterator[None]:
        if not self.is_sqlite:
            yield
            return
        async with asyncio.timeout(self._timeout):
            await self._write_lock.acquire()
        try:
            yield
        finally:
            self._write_lock.release()

    @contextmanager
    def _database_errors(self) -> Iterator[None]:
        """Raise ``StoreUnavailable`` for every timeout and every error of the database."""
        try:
            yield
        except TimeoutError as error:
            raise StoreUnavailable(f"{self._name} did not answer in time") from error
        except (SQLAlchemyError, OSError) as error:
            raise StoreUnavailable(f"{self._name} failed: {reason_of(error)}") from error

    async def aclose(self) -> None:
        """Refuse new work, wait for what has started, then close all connections.

        There is no limit of this wait beside those of the work, because a connection that is in use now would be
        closed by nobody later.
        """
        self._is_open = False
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._engine.dispose()


def mark_retrieved(future: asyncio.Future[T]) -> None:
    """Mark an exception as retrieved, which asyncio would log otherwise: the caller may have been cancelled."""
    if not future.cancelled():
        future.exception()


def file_id(file: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a file, or None if there is no file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def reason_of(error: Exception) -> str:
    """Return the class and the first line of a driver's error. SQLAlchemy's own text has the statement.

    An error of prepared statements that only poolers cause has a hint.
    """
    cause = getattr(error, "orig", None) or error
    kind = type(cause).__name__
    hint = POOLER_HINT if kind in POOLER_ERRORS else ""
    return f"{kind}: {next(iter(str(cause).splitlines()), '')[:MAX_REASON]}{hint}"


class DatabaseUser(Protocol):
    """A part of the store, with the database that it uses."""

    _database: Database


S = TypeVar("S", bound=DatabaseUser)

Method = Callable[Concatenate[S, P], Coroutine[object, object, T]]
Statements = Callable[Concatenate[S, AsyncConnection, P], Coroutine[object, object, T]]
"""A method that gets the connection of its transaction."""


def reads(method: Statements[S, P, T]) -> Method[S, P, T]:
    """Decorate a method so that it reads in a transaction, to its end even if its caller is cancelled."""
    return _in_transaction(method, Database.read_transaction)


def writes(method: Statements[S, P, T]) -> Method[S, P, T]:
    """Decorate a method so that it writes in a transaction, to its end even if its caller is cancelled."""
    return _in_transaction(method, Database.write_transaction)


def _in_transaction(
    method: Statements[S, P, T], begin: Callable[[Database], AbstractAsyncContextManager[AsyncConnection]]
) -> Method[S, P, T]:
    @wraps(method)
    async def run_to_end(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def run() -> T:
            async with begin(self._database) as connection:
                return await method(self, connection, *args, **kwargs)

        return await self._database.run_to_end(run())

    return run_to_end


def create_postgresql_engine(url: URL, timeout: float) -> AsyncEngine:
    """Create the engine for PostgreSQL. Raises ``ValueError`` if ``prepared`` is not ``off``."""
    prepared = url.query.get(PREPARED, "")
    if prepared not in {"", "off"}:
        raise ValueError("prepared: may be off")
    url = url.difference_update_query([PREPARED])
    url = url.set(drivername="postgresql+psycopg").update_query_dict({**LIBPQ, **url.query})
    engine = create_async_engine(
        url,
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=timeout,
        pool_pre_ping=True,  # a connection that the server, a proxy or a snapshot has ended would fail its next user
        hide_parameters=True,
        connect_args={"prepare_threshold": None} if prepared else {},
    )
    event.listen(engine.sync_engine, "connect", _set_timeouts)
    return engine


def _set_timeouts(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    """Set the timeout of idle transactions.

    A statement is used because connection poolers reject this setting as a connection parameter.
    """
    cursor = connection.cursor()
    cursor.execute(f"SET idle_in_transaction_session_timeout = '{SILENT_SECONDS}s'")
    cursor.close()
    connection.commit()


def create_sqlite_engine(url: URL, timeout: float) -> AsyncEngine:
    engine = create_async_engine(
        url.set(drivername="sqlite+aiosqlite"),
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=timeout,
        hide_parameters=True,
        connect_args={"timeout": timeout / 2, "isolation_level": None},
    )
    event.listen(engine.sync_engine, "connect", _set_pragmas)
    event.listen(engine.sync_engine, "begin", _begin_transaction)
    return engine


def _set_pragmas(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    """Set the pragmas of a new connection.

    With ``synchronous = NORMAL``, commits survive a crash of the process. A power loss may lose the last commits.
    """
    cursor = connection.cursor()
    _write_ahead(cursor)
    for setting in ("synchronous = NORMAL", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _write_ahead(cursor: DBAPICursor) -> None:
    """Switch the file to write-ahead logging.

    If several connections do so at once, SQLite lets all but one fail immediately, so this waits for the lock and
    retries.
    """
    for _ in range(WAL_TRIES):
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:  # BEGIN IMMEDIATE waits until the other connection has finished
            cursor.execute("BEGIN IMMEDIATE")
            cursor.execute("ROLLBACK")
        else:
            return
    raise sqlite3.OperationalError("cannot switch the database to write-ahead logging")


def _begin_transaction(connection: Connection) -> None:
    """Begin a transaction, because the driver does not.

    Writes take the lock now: a read cannot wait to upgrade to a write.
    """
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
