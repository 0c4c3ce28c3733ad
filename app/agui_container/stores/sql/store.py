"""The store in a database, and the migration of an older database to the current schema.

Rule: all parts share one ``Database``. All missing steps of a migration run in one transaction under one lock. If
several replicas start at once, one of them migrates and the others find the work done. A new database gets the tables
of ``schema``, which are the result of all steps. A released step never changes.
"""

import time
from collections.abc import Callable
from pathlib import Path

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory
from sqlalchemy import URL, Connection, text

from agui_container.ports.store import StoreUnavailable
from agui_container.stores.sql.database import Database
from agui_container.stores.sql.runs import SqlRuns
from agui_container.stores.sql.schema import METADATA
from agui_container.stores.sql.threads import SqlThreads

STEPS = Path(__file__).with_name("migrations")

LOCK = 0x61677569
"""Key of the advisory lock on PostgreSQL ("agui" in ASCII). SQLite needs none, because every write locks the file."""


def upgrade(connection: Connection) -> None:
    """Apply the missing steps. Raises ``StoreUnavailable`` if another version has made the database."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    steps = ScriptDirectory(str(STEPS), version_locations=[str(STEPS)])
    context = MigrationContext.configure(connection)
    if context.get_current_revision() is None:
        METADATA.create_all(connection)
        context.stamp(steps, "head")
    with Operations.context(context):
        for step in missing_steps(context, steps):
            step.module.upgrade()
            context.stamp(steps, step.revision)


def missing_steps(context: MigrationContext, steps: ScriptDirectory) -> list[Script]:
    """Return the steps that a database lacks, in order. Raises ``StoreUnavailable`` as ``upgrade``."""
    current = context.get_current_revision()
    if current is not None and current not in {step.revision for step in steps.walk_revisions()}:
        raise StoreUnavailable(f"the database was made by another version of this program: step {current} is unknown")
    missing = [step for step in steps.iterate_revisions("head", current or "base") if step.revision != current]
    return missing[::-1]


def count_missing_steps(connection: Connection) -> int:
    """Return the number of steps that a database lacks. Raises ``StoreUnavailable`` as ``upgrade``."""
    steps = ScriptDirectory(str(STEPS), version_locations=[str(STEPS)])
    return len(missing_steps(MigrationContext.configure(connection), steps))


class SqlStore(SqlRuns, SqlThreads):
    """A ``Store`` in SQLite or PostgreSQL. The arguments are those of ``Database`` and ``SqlRuns``."""

    writes_turns = False

    def __init__(self, url: URL, timeout: float | None = None, now: Callable[[], float] = time.time) -> None:
        super().__init__(Database(url, timeout), now)

    @property
    def database(self) -> Database:
        return self._database

    async def open(self) -> None:
        try:
            async with self._database.open() as connection:
                await connection.run_sync(upgrade)
        except BaseException:
            await self.aclose()
            raise

    async def count_missing_steps(self) -> int:
        """Return the number of steps that ``open`` would apply. Raises as ``open``."""
        async with self._database.read_transaction() as connection:
            return await connection.run_sync(count_missing_steps)

    async def aclose(self) -> None:
        await self._database.aclose()
