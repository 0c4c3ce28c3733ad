"""Rows to records, and the statements that several parts share."""

from sqlalchemy import ColumnElement, Row, Table, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from app.ports.conversation import GoalStatus, StoredGoal, ThreadRecord, ThreadStatus
from app.ports.records import RunKey, RunRecord, RunStatus, ThreadKey
from app.stores.sql.columns import digest
from app.stores.sql.schema import RUNS, THREADS

# --- threads ----------------------------------------------------------------------------------------------------------

THREAD_FACTS = (
    *(THREADS.c[name] for name in ("number", "owner", "thread_id", "status", "created_at", "changed_at", "title")),
    *(THREADS.c[name] for name in ("forked_thread", "forked_message", "revision", "metadata")),
    select(RUNS.c.run_id)
    .where(RUNS.c.thread == THREADS.c.number, RUNS.c.status == RunStatus.RUNNING)
    .scalar_subquery()
    .label("active_run"),
)
"""The columns of a ``ThreadRecord``, and what is needed to go on from it."""


def thread_record(row: Row[*tuple[object, ...]]) -> ThreadRecord:
    """A row of ``THREAD_FACTS``."""
    return ThreadRecord(
        ThreadKey(row.owner, row.thread_id),
        ThreadStatus(row.status) if row.active_run is None else ThreadStatus.AGENT_TURN,
        row.created_at,
        row.changed_at,
        row.title,
        row.active_run,
        None if row.forked_thread is None else (row.forked_thread, row.forked_message),
        row.metadata,
    )


def is_thread(key: ThreadKey) -> ColumnElement[bool]:
    """The row of that thread."""
    return THREADS.c.digest == digest(*key)


async def locked(connection: AsyncConnection, key: ThreadKey) -> int | None:
    """The thread's number, and nobody else changes it until the transaction is over; None where there is none."""
    number: int | None = await connection.scalar(select(THREADS.c.number).where(is_thread(key)).with_for_update())
    return number


async def touch(connection: AsyncConnection, thread: int, **values: object) -> int:
    """Change a locked thread's row; gives the revision that this is."""
    statement = update(THREADS).where(THREADS.c.number == thread).returning(THREADS.c.revision)
    revision: int = await connection.scalar(statement.values(revision=THREADS.c.revision + 1, **values)) or 0
    return revision


# --- runs -------------------------------------------------------------------------------------------------------------

RUN_FACTS = tuple(column for column in RUNS.c if column.name != "input")
"""The columns of a ``RunRecord``."""


def run_record(row: Row[*tuple[object, ...]]) -> RunRecord:
    """A row of ``RUN_FACTS``."""
    return RunRecord(
        RunKey(row.owner, row.thread_id, row.run_id),
        row.replica,
        row.lease_until,
        RunStatus(row.status),
        row.started_at,
        row.last_seq,
        row.ended_at,
        row.usage,
        row.error,
        row.kept,
        row.readers,
    )


def is_run(key: RunKey) -> ColumnElement[bool]:
    """The row of that run."""
    return RUNS.c.digest == digest(*key)


# --- goals ------------------------------------------------------------------------------------------------------------


def goal_record(row: Row[*tuple[object, ...]]) -> StoredGoal:
    """A goal with its run's id."""
    return StoredGoal(
        row.run_id,
        row.place,
        row.type,
        row.schema,
        row.created_at,
        GoalStatus(row.status),
        row.result,
        row.concluded_at,
    )


# --- any --------------------------------------------------------------------------------------------------------------


def insert(dialect: str, table: Table) -> postgresql.Insert | sqlite.Insert:
    """An INSERT that can say what to do on a conflict, which each dialect has for itself."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
