"""Notes of threads in a database.

Rule: one conditional UPDATE settles a note, so only one of several answers succeeds.
"""

from collections.abc import Collection, Sequence
from functools import cache

from sqlalchemy import ColumnElement, Insert, and_, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from agui_container.ports.records import ThreadNote
from agui_container.stores.sql.schema import NOTES, digest_of, insert

NOTE = tuple(NOTES.c[name] for name in ("kind", "note_id", "data", "until", "settled", "message_id"))
"""Columns of a ``ThreadNote``, in the order of its fields."""


async def read_notes(
    connection: AsyncConnection, thread: ColumnElement[int] | int, kinds: Collection[str]
) -> list[ThreadNote]:
    """Return the notes of a thread, in the order in which they were first stored."""
    query = select(*NOTE).where(NOTES.c.thread == thread, NOTES.c.kind.in_(kinds)).order_by(NOTES.c.number)
    return [ThreadNote(*row) for row in await connection.execute(query)]


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
        await connection.execute(_upsert(connection.dialect.name), rows)


async def settle(connection: AsyncConnection, thread: ColumnElement[int], note: ThreadNote) -> bool:
    """Replace a note that is not settled. Return True if this call settled it."""
    is_open = and_(NOTES.c.digest == digest_of(note.kind, note.id), NOTES.c.settled.is_(False))
    statement = update(NOTES).where(NOTES.c.thread == thread, is_open)
    result = await connection.execute(statement.values(settled=True, data=note.data, until=note.until))
    return result.rowcount == 1


async def forget_notes(connection: AsyncConnection, until: float) -> None:
    """Delete the notes that expire up to a time."""
    await connection.execute(delete(NOTES).where(NOTES.c.until <= until))


@cache
def _upsert(dialect: str) -> Insert:
    """Return the upsert of notes. It is built once, because ``excluded`` copies the table."""
    new = insert(dialect, NOTES)
    names = ("data", "until", "settled", "message_id", "message_digest")
    return new.on_conflict_do_update(
        index_elements=["thread", "digest"], set_={name: new.excluded[name] for name in names}
    )
