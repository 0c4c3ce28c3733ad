"""Migration of a database to the current schema.

Rule: all missing steps run in one transaction under one lock. If several replicas start at once, one of them migrates
and the others find the work done. A released step never changes. ``schema`` describes the result of all steps.
"""

from pathlib import Path

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from agui_container.ports.store import StoreUnavailable

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
    current = context.get_current_revision()
    if current is not None and current not in {step.revision for step in steps.walk_revisions()}:
        raise StoreUnavailable(f"the database was made by a later version of this program: step {current} is not known")
    missing = [step for step in steps.iterate_revisions(to, current or "base") if step.revision != current]
    with Operations.context(context):
        for step in reversed(missing):
            step.module.upgrade()
            context.stamp(steps, step.revision)
