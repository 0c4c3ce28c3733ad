"""Brings a database up to date, step by step.

Rule: all steps that are missing are one transaction under one lock, so that replicas that start at once make one of
them do the work and the others find it done. A step that was shipped is never changed; ``schema`` says what they give.
"""

from pathlib import Path

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from agui_container.ports.store import StoreUnavailable

STEPS = Path(__file__).with_name("migrations")

LOCK = 0x61677569
"""What replicas on PostgreSQL agree on: "agui". SQLite's own lock is held by every write."""


def upgrade(connection: Connection, to: str = "head") -> None:
    """Take the steps up to ``to`` that have not been taken. The connection is in a transaction for writing.

    Raises:
        StoreUnavailable: a later version of this program has taken steps that are not known here.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    steps = ScriptDirectory(str(STEPS), version_locations=[str(STEPS)])
    context = MigrationContext.configure(connection)
    taken = context.get_current_revision()
    if taken is not None and taken not in {step.revision for step in steps.walk_revisions()}:
        raise StoreUnavailable(f"the database was made by a later version of this program: step {taken} is not known")
    missing = [step for step in steps.iterate_revisions(to, taken or "base") if step.revision != taken]
    with Operations.context(context):
        for step in reversed(missing):
            step.module.upgrade()
            context.stamp(steps, step.revision)
