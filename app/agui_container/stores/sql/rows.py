"""Conversion of rows to records, and the statements that several parts of the store share.

Rule: a change of a thread is written under the thread's lock. A value equal to the stored one is not a change, so
repeating a write does not appear in any delta. New messages get increasing positions. Only a new order changes existing
positions.
"""

from collections.abc import Sequence
from functools import cache

from sqlalchemy import ColumnElement, Insert, Row, ScalarSelect, bindparam, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from agui_container.ports.records import (
    Change,
    RunKey,
    RunRecord,
    RunStatus,
    StoredMessage,
    ThreadKey,
    ThreadNote,
    ThreadRecord,
    ThreadStatus,
)
from agui_container.stores.sql.schema import MESSAGES, NOTES, RUNS, THREADS, digest_of, insert

# --- threads ----------------------------------------------------------------------------------------------------------

THREAD_FACTS = (
    *(THREADS.c[name] for name in ("number", "owner", "thread_id", "status", "created_at", "changed_at", "title")),
    *(THREADS.c[name] for name in ("forked_thread", "forked_message", "revision")),
    select(RUNS.c.run_id)
    .where(RUNS.c.thread == THREADS.c.number, RUNS.c.status == RunStatus.RUNNING)
    .scalar_subquery()
    .label("active_run"),
)
"""Columns of a ``ThreadRecord``, and the number and revision of the thread."""


def thread_record(row: Row[*tuple[object, ...]]) -> ThreadRecord:
    return ThreadRecord(
        ThreadKey(row.owner, row.thread_id),
        ThreadStatus(row.status) if row.active_run is None else ThreadStatus.AGENT_TURN,
        row.created_at,
        row.changed_at,
        row.title,
        row.active_run,
        None if row.forked_thread is None else (row.forked_thread, row.forked_message),
    )


def is_thread(key: ThreadKey) -> ColumnElement[bool]:
    return THREADS.c.digest == digest_of(*key)


def number_of(key: ThreadKey) -> ScalarSelect[int]:
    return select(THREADS.c.number).where(is_thread(key)).scalar_subquery()


async def lock_thread(connection: AsyncConnection, key: ThreadKey) -> int | None:
    """Lock a thread until the end of the transaction. Return its number, or None if there is no such thread."""
    number: int | None = await connection.scalar(select(THREADS.c.number).where(is_thread(key)).with_for_update())
    return number


async def touch(connection: AsyncConnection, thread: int, **values: object) -> int:
    """Update the row of a locked thread. Return its new revision."""
    statement = update(THREADS).where(THREADS.c.number == thread).returning(THREADS.c.revision)
    revision: int = await connection.scalar(statement.values(revision=THREADS.c.revision + 1, **values)) or 0
    return revision


# --- runs -------------------------------------------------------------------------------------------------------------

RUN_FACTS = tuple(RUNS.c)
"""Columns of a ``RunRecord``, and the number of the run."""

IS_OPEN = RUNS.c.ended_at.is_(None)
"""Condition of a run that has not ended."""


def run_record(row: Row[*tuple[object, ...]]) -> RunRecord:
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
        row.fingerprint,
        row.unwanted,
    )


def is_run(key: RunKey) -> ColumnElement[bool]:
    return RUNS.c.digest == digest_of(*key)


# --- changes ----------------------------------------------------------------------------------------------------------


TO_POSITION = (
    update(MESSAGES)
    .where(MESSAGES.c.thread == bindparam("in_thread"), MESSAGES.c.digest == bindparam("of_message"))
    .values(position=bindparam("to"))
)


async def apply_change(connection: AsyncConnection, thread: int, revision: int, change: Change) -> None:
    """Write a change of a locked thread as part of ``revision``."""
    if change.messages:
        await _put(connection, thread, revision, change.messages)
    if change.order is not None and await _reorder(connection, thread, change.order):
        row = update(THREADS).where(THREADS.c.number == thread)
        await connection.execute(row.values(order_revision=revision))
    if change.state is not None:
        differs = or_(THREADS.c.state.is_(None), THREADS.c.state != change.state)
        row = update(THREADS).where(THREADS.c.number == thread, differs)
        await connection.execute(row.values(state=change.state, state_revision=revision))
    if change.notes:
        await write_notes(connection, thread, change.notes)
    if change.title is not None:
        untitled = update(THREADS).where(THREADS.c.number == thread, THREADS.c.title.is_(None))
        await connection.execute(untitled.values(title=change.title))


async def _put(connection: AsyncConnection, thread: int, revision: int, messages: Sequence[StoredMessage]) -> None:
    """Insert or update messages. Messages with a known id keep their position."""
    last = select(func.coalesce(func.max(MESSAGES.c.position), 0)).where(MESSAGES.c.thread == thread)
    end: int = await connection.scalar(last) or 0
    rows = [
        {
            "thread": thread,
            "digest": digest_of(message.id),
            "message_id": message.id,
            "run_id": message.run_id,
            "position": end + at,
            "revision": revision,
            "data": message.data,
        }
        for at, message in enumerate(messages, start=1)
    ]
    await connection.execute(_message_upsert(connection.dialect.name), rows)


@cache
def _message_upsert(dialect: str) -> Insert:
    """Return the upsert of messages, which skips equal ones.

    It is built once, because ``excluded`` copies the table.
    """
    new = insert(dialect, MESSAGES)
    return new.on_conflict_do_update(
        index_elements=["thread", "digest"],
        set_={name: new.excluded[name] for name in ("data", "run_id", "revision")},
        where=MESSAGES.c.data != new.excluded.data,
    )


async def _reorder(connection: AsyncConnection, thread: int, order: Sequence[str]) -> bool:
    """Sort the messages into this order and delete the others. Return True if anything changed."""
    query = select(MESSAGES.c.digest, MESSAGES.c.position).where(MESSAGES.c.thread == thread)
    rows = await connection.execute(query.order_by(MESSAGES.c.position))
    stored: dict[bytes, int] = {name: position for name, position in rows}  # noqa: C416 - rows are no pairs to mypy
    new_order = [name for name in map(digest_of, dict.fromkeys(order)) if name in stored]
    if new_order == list(stored):
        return False
    moved = [
        {"in_thread": thread, "of_message": name, "to": at}
        for at, name in enumerate(new_order, start=1)
        if stored[name] != at
    ]
    removed = [{"of_message": name} for name in stored.keys() - set(new_order)]
    if removed:
        messages = delete(MESSAGES).where(MESSAGES.c.thread == thread, MESSAGES.c.digest == bindparam("of_message"))
        notes = delete(NOTES).where(NOTES.c.thread == thread, NOTES.c.message_digest == bindparam("of_message"))
        await connection.execute(messages, removed)
        await connection.execute(notes, removed)
    if moved:
        await connection.execute(TO_POSITION, moved)
    return True


async def write_notes(connection: AsyncConnection, thread: int, notes: Sequence[ThreadNote]) -> None:
    """Store notes of a locked thread. Each replaces an earlier one with the same kind and id."""
    rows = [
        {
            "thread": thread,
            "digest": digest_of(note.kind, note.id),
            "kind": note.kind,
            "note_id": note.id,
            "data": note.data,
            "until": note.until,
            "settled": note.is_settled,
            "message_id": note.message_id,
            "message_digest": None if note.message_id is None else digest_of(note.message_id),
        }
        for note in notes
    ]
    if rows:
        await connection.execute(_note_upsert(connection.dialect.name), rows)


@cache
def _note_upsert(dialect: str) -> Insert:
    """Return the upsert of notes. It is built once, because ``excluded`` copies the table."""
    new = insert(dialect, NOTES)
    names = ("data", "until", "settled", "message_id", "message_digest")
    return new.on_conflict_do_update(
        index_elements=["thread", "digest"], set_={name: new.excluded[name] for name in names}
    )
