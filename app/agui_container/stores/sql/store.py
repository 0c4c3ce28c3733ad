"""The store in a database, and the migration of an older database to the current schema.

Rule: all parts share one ``Database``. All missing steps of a migration run in one transaction under one lock. If
several replicas start at once, one of them migrates and the others find the work done. A released step never changes.
``schema`` describes the result of all steps.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory
from sqlalchemy import URL, ColumnElement, Connection, Double, func, literal, text

from agui_container.ports.records import (
    Begun,
    Busy,
    Claim,
    DayTokens,
    Ending,
    Exists,
    Lease,
    Page,
    RunKey,
    RunProgress,
    RunRecord,
    StoredMessage,
    StoreWarning,
    ThreadDelta,
    ThreadKey,
    ThreadNote,
    ThreadRecord,
)
from agui_container.ports.store import PAGE, Delete, Fork, Merge, Rename, RunQuery, StoreUnavailable
from agui_container.protocol.wire.envelope import Envelope
from agui_container.stores.sql import runs
from agui_container.stores.sql.database import Database, uncancellable
from agui_container.stores.sql.envelopes import AppendBatcher
from agui_container.stores.sql.notes import forget_notes, read_notes, settle, write_notes
from agui_container.stores.sql.rows import lock_thread, number_of
from agui_container.stores.sql.threads import edit_thread, read_messages, read_thread, read_threads

STEPS = Path(__file__).with_name("migrations")

LOCK = 0x61677569
"""Key of the advisory lock on PostgreSQL ("agui" in ASCII). SQLite needs none, because every write locks the file."""


def upgrade(connection: Connection) -> None:
    """Apply the missing steps. The connection must be in a transaction for writing.

    Raises:
        StoreUnavailable: A later version of this program has migrated the database.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    steps = ScriptDirectory(str(STEPS), version_locations=[str(STEPS)])
    context = MigrationContext.configure(connection)
    with Operations.context(context):
        for step in missing_steps(context, steps):
            step.module.upgrade()
            context.stamp(steps, step.revision)


def missing_steps(context: MigrationContext, steps: ScriptDirectory) -> list[Script]:
    """Return the steps that a database lacks, in order. Raises ``StoreUnavailable`` as ``upgrade``."""
    current = context.get_current_revision()
    if current is not None and current not in {step.revision for step in steps.walk_revisions()}:
        raise StoreUnavailable(f"the database was made by a later version of this program: step {current} is not known")
    missing = [step for step in steps.iterate_revisions("head", current or "base") if step.revision != current]
    return missing[::-1]


def count_missing_steps(connection: Connection) -> int:
    """Return the number of steps that a database lacks. Raises ``StoreUnavailable`` as ``upgrade``."""
    steps = ScriptDirectory(str(STEPS), version_locations=[str(STEPS)])
    return len(missing_steps(MigrationContext.configure(connection), steps))


class SqlStore:
    """A ``Store`` in SQLite or PostgreSQL.

    Args:
        url: URL of the database.
        timeout: limit of one call, in seconds. None is that of the kind of database.
        now: returns the time in Unix seconds, for a SQLite file. PostgreSQL has a clock of its own.
    """

    writes_turns = False

    def __init__(self, url: URL, timeout: float | None = None, now: Callable[[], float] = time.time) -> None:
        self._database = database = Database(url, timeout)
        self._appends = AppendBatcher(database)
        self._now = now

    @property
    def database(self) -> Database:
        """The database, which files may share."""
        return self._database

    def take_warnings(self, thread: ThreadKey) -> Sequence[StoreWarning]:  # noqa: ARG002 - as in the port
        return ()

    # --- the life of a run ---

    @uncancellable
    async def enqueue(self, claim: Claim) -> RunRecord | None:
        async with self._database.write_transaction() as connection:
            return await runs.enqueue(connection, claim, self._time())

    @uncancellable
    async def begin(self, claim: Claim, merge: Merge) -> Begun | Exists | Busy:
        async with self._database.write_transaction() as connection:
            return await runs.begin(connection, claim, merge, self._time())

    async def append(self, run: RunKey, replica: str, envelopes: Sequence[Envelope]) -> None:
        await self._appends.put(run, replica, envelopes)

    @uncancellable
    async def finish(self, run: RunKey, replica: str, envelopes: Sequence[Envelope], ending: Ending) -> None:
        async with self._database.write_transaction() as connection:
            if await runs.finish(connection, run, replica, envelopes, ending) and ending.tokens:
                await runs.add_tokens(connection, run.owner, ending.tokens, self._time())

    @uncancellable
    async def renew(self, replica: str, lease: float, progress: Sequence[RunProgress] = ()) -> Sequence[Lease]:
        if progress:
            async with self._database.write_transaction() as connection:
                await runs.report_progress(connection, replica, progress)
        async with self._database.write_transaction() as connection:
            return await runs.renew(connection, replica, self._time() + lease)

    @uncancellable
    async def cancel(self, run: RunKey) -> bool:
        async with self._database.write_transaction() as connection:
            return await runs.cancel(connection, run)

    @uncancellable
    async def take_over(self, replica: str, lease: float) -> Sequence[RunRecord]:
        async with self._database.write_transaction() as connection:
            return await runs.take_over(connection, replica, lease, self._time())

    @uncancellable
    async def forget(self, ended_before: float, notes_until: float, *, limit: int = PAGE) -> int:
        async with self._database.write_transaction() as connection:
            await forget_notes(connection, notes_until)
            return await runs.forget(connection, ended_before, limit)

    def _time(self) -> ColumnElement[float]:
        """Return the expression of the time by the clock that all replicas share."""
        if self._database.is_sqlite:
            return literal(self._now(), Double)
        return func.extract("epoch", func.clock_timestamp()).cast(Double)

    # --- reading runs ---

    @uncancellable
    async def run(self, key: RunKey) -> RunRecord | None:
        async with self._database.read_transaction() as connection:
            return await runs.read_run(connection, key)

    @uncancellable
    async def runs(self, query: RunQuery, *, limit: int = PAGE, page: str | None = None) -> Page[RunRecord]:
        async with self._database.read_transaction() as connection:
            return await runs.read_runs(connection, query, limit, page)

    @uncancellable
    async def envelopes(self, run: RunKey, after: int) -> Sequence[Envelope]:
        async with self._database.read_transaction() as connection:
            return await runs.read_envelopes(connection, run, after)

    @uncancellable
    async def tokens(self, owner: str) -> DayTokens:
        async with self._database.read_transaction() as connection:
            return await runs.read_tokens(connection, owner, self._time())

    # --- threads ---

    @uncancellable
    async def thread(
        self, key: ThreadKey, since: str | None = None, *, messages: bool = True, notes: Sequence[str] = ()
    ) -> ThreadDelta | None:
        async with self._database.read_transaction() as connection:
            return await read_thread(connection, key, since, messages=messages, notes=notes)

    @uncancellable
    async def messages(
        self, key: ThreadKey, *, limit: int = PAGE, before: str | None = None, last: str | None = None
    ) -> Page[StoredMessage] | None:
        async with self._database.read_transaction() as connection:
            return await read_messages(connection, key, limit, before, last)

    @uncancellable
    async def threads(self, owner: str, *, limit: int = PAGE, page: str | None = None) -> Page[ThreadRecord]:
        async with self._database.read_transaction() as connection:
            return await read_threads(connection, owner, limit, page)

    @uncancellable
    async def edit(self, key: ThreadKey, edit: Rename | Fork | Delete) -> ThreadRecord | None:
        async with self._database.write_transaction() as connection:
            return await edit_thread(connection, key, edit)

    # --- notes ---

    @uncancellable
    async def notes(self, thread: ThreadKey, *kinds: str) -> Sequence[ThreadNote]:
        async with self._database.read_transaction() as connection:
            return await read_notes(connection, number_of(thread), kinds)

    @uncancellable
    async def put_notes(self, thread: ThreadKey, notes: Sequence[ThreadNote]) -> bool:
        async with self._database.write_transaction() as connection:
            number = await lock_thread(connection, thread)
            if number is not None:
                await write_notes(connection, number, notes)
            return number is not None

    @uncancellable
    async def settle_note(self, thread: ThreadKey, note: ThreadNote) -> bool:
        async with self._database.write_transaction() as connection:
            return await settle(connection, number_of(thread), note)

    # --- the process ---

    async def open(self) -> None:
        """Connect, and migrate an older database. Raises ``StoreUnavailable``."""
        try:
            async with self._database.migration_transaction() as connection:
                await connection.run_sync(upgrade)
        except BaseException:
            await self.aclose()
            raise

    async def count_missing_steps(self) -> int:
        """Connect without a change of the schema. Return the number of steps that ``open`` would apply.

        Raises:
            StoreUnavailable: the database cannot be reached, or a later version of this program has migrated it.
        """
        async with self._database.read_transaction() as connection:
            return await connection.run_sync(count_missing_steps)

    async def aclose(self) -> None:
        await self._database.aclose()
