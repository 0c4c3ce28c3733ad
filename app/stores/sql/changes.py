"""What a run does to its thread, written under the thread's lock.

Rule: only what is different counts as changed, so that saying the same again gives nobody a delta. Messages have
positions that grow; only another order gives them new ones.
"""

from collections.abc import Sequence
from functools import cache

from sqlalchemy import Insert, bindparam, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.ports.conversation import Change, StoredMessage
from app.stores.sql.columns import digest
from app.stores.sql.rows import insert
from app.stores.sql.schema import MESSAGES, THREADS

TO_POSITION = (
    update(MESSAGES)
    .where(MESSAGES.c.thread == bindparam("in_thread"), MESSAGES.c.digest == bindparam("of_message"))
    .values(position=bindparam("to"))
)


async def apply(connection: AsyncConnection, thread: int, revision: int, change: Change) -> None:
    """Write the change as part of that revision of a locked thread."""
    if change.messages:
        await _put(connection, thread, revision, change.messages)
    if change.order is not None and await _reorder(connection, thread, change.order):
        await _set(connection, thread, order_revision=revision)
    if change.state is not None:
        differs = or_(THREADS.c.state.is_(None), THREADS.c.state != change.state)
        row = update(THREADS).where(THREADS.c.number == thread, differs)
        await connection.execute(row.values(state=change.state, state_revision=revision))
    if change.title is not None:
        untitled = update(THREADS).where(THREADS.c.number == thread, THREADS.c.title.is_(None))
        await connection.execute(untitled.values(title=change.title))


async def _set(connection: AsyncConnection, thread: int, **values: object) -> None:
    await connection.execute(update(THREADS).where(THREADS.c.number == thread).values(values))


async def _put(connection: AsyncConnection, thread: int, revision: int, messages: Sequence[StoredMessage]) -> None:
    """Known ids keep their position."""
    last = select(func.coalesce(func.max(MESSAGES.c.position), 0)).where(MESSAGES.c.thread == thread)
    end: int = await connection.scalar(last) or 0
    rows = [
        {
            "thread": thread,
            "digest": digest(message.id),
            "message_id": message.id,
            "run_id": message.run_id,
            "position": end + at,
            "revision": revision,
            "data": message.data,
        }
        for at, message in enumerate(messages, start=1)
    ]
    await connection.execute(_changing(connection.dialect.name), rows)


@cache
def _changing(dialect: str) -> Insert:
    """Puts messages in; known ones where they are different. Made once: ``excluded`` is a copy of the table."""
    new = insert(dialect, MESSAGES)
    return new.on_conflict_do_update(
        index_elements=["thread", "digest"],
        set_={name: new.excluded[name] for name in ("data", "run_id", "revision")},
        where=MESSAGES.c.data != new.excluded.data,
    )


async def _reorder(connection: AsyncConnection, thread: int, order: Sequence[str]) -> bool:
    """Put the messages in this order and drop the others. Gives whether that was any different."""
    rows = select(MESSAGES.c.digest, MESSAGES.c.position).where(MESSAGES.c.thread == thread)
    found = await connection.execute(rows.order_by(MESSAGES.c.position))
    stored: dict[bytes, int] = {name: position for name, position in found}  # noqa: C416 - rows are no pairs to mypy
    wanted = [name for name in map(digest, dict.fromkeys(order)) if name in stored]
    if wanted == list(stored):
        return False
    moved = [
        {"in_thread": thread, "of_message": name, "to": at}
        for at, name in enumerate(wanted, start=1)
        if stored[name] != at
    ]
    dropped = [{"of_message": name} for name in stored.keys() - set(wanted)]
    if dropped:
        gone = delete(MESSAGES).where(MESSAGES.c.thread == thread, MESSAGES.c.digest == bindparam("of_message"))
        await connection.execute(gone, dropped)
    if moved:
        await connection.execute(TO_POSITION, moved)
    return True
