"""The store in a database, and the migration of an older database to the current schema.

Rule: all parts share one ``Database``. All missing steps of a migration run in one transaction under one lock. If
several replicas start at once, one of them migrates and the others find the work done. A released step never changes.
``schema`` describes the result of all steps.
"""

from collections.abc import Sequence
from pathlib import Path

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory
from sqlalchemy import URL, Connection, text

from agui_container.ports.records import StoreWarning, ThreadKey
from agui_container.ports.store import StoreUnavailable
from agui_container.stores.sql.database import Database
from agui_container.stores.sql.interrupts import SqlInterrupts
from agui_container.stores.sql.runs import SqlRuns
from agui_container.stores.sql.threads import SqlFeedbacks, SqlGoals, SqlThreads

STEPS = Path(__file__).with_name("migrations")

LOCK = 0x61677569
"""Key of the advisory lock on PostgreSQL ("agui" in ASCII). SQLite needs none, because every write locks the file."""


def upgrade(connection: Connection, to: str = "head") -> None:
    """Apply the missing steps up to ``to``. The connection must be in a transaction for writing.

    Raises:
        StoreUnavailable: A later version of this program has migrated the database.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    steps = ScriptDirectory(str(STEPS), version_locations=[str(STEPS)])
    context = MigrationContext.configure(connection)
    with Operations.context(context):
        for step in missing_steps(context, steps, to):
            step.module.upgrade()
            context.stamp(steps, step.revision)


def missing_steps(context: MigrationContext, steps: ScriptDirectory, to: str = "head") -> list[Script]:
    """Return the steps up to ``to`` that a database lacks, in order. Raises ``StoreUnavailable`` as ``upgrade``."""
    current = context.get_current_revision()
    if current is not None and current not in {step.revision for step in steps.walk_revisions()}:
        raise StoreUnavailable(f"the database was made by a later version of this program: step {current} is not known")
    missing = [step for step in steps.iterate_revisions(to, current or "base") if step.revision != current]
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
    """

    def __init__(self, url: URL, timeout: float | None = None) -> None:
        self._database = Database(url, timeout)
        self.runs = SqlRuns(self._database)
        self.threads = SqlThreads(self._database)
        self.goals = SqlGoals(self._database)
        self.interrupts = SqlInterrupts(self._database)
        self.feedbacks = SqlFeedbacks(self._database)

    def take_warnings(self, thread: ThreadKey) -> Sequence[StoreWarning]:  # noqa: ARG002 - as in the port
        """Return nothing, because a failed call raises."""
        return ()

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
        """Close all connections."""
        await self._database.aclose()
