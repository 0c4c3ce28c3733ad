"""Threads in a database, with their messages and notes.

Rule: a delta contains everything with a later revision than the one in the token.
"""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import ColumnElement, Row, Select, and_, delete, exists, func, literal, or_, select, update
from sqlalchemy import insert as plain_insert
from sqlalchemy.ext.asyncio import AsyncConnection

from agui_container.ports.records import (
    Page,
    RunStatus,
    StoredMessage,
    ThreadDelta,
    ThreadKey,
    ThreadNote,
    ThreadRecord,
)
from agui_container.ports.store import PAGE, READ_BYTES, BadToken, CannotFork, Delete, Fork, Rename
from agui_container.stores.page_tokens import (
    make_last_token,
    make_page,
    make_revision,
    parse_last_token,
    parse_revision,
)
from agui_container.stores.sql.database import Database, reads, writes
from agui_container.stores.sql.rows import (
    THREAD_FACTS,
    is_thread,
    lock_thread,
    number_of,
    thread_record,
    touch,
    write_notes,
)
from agui_container.stores.sql.schema import MESSAGES, NOTES, RUNS, THREADS, digest_of, insert

REVISIONS = (THREADS.c.state_revision, THREADS.c.order_revision, THREADS.c.state)

MESSAGE = (MESSAGES.c.message_id, MESSAGES.c.data, MESSAGES.c.run_id)
"""Columns of a ``StoredMessage``, in the order of its fields."""

NOTE = tuple(NOTES.c[name] for name in ("kind", "note_id", "data", "until", "settled", "message_id"))
"""Columns of a ``ThreadNote``, in the order of its fields."""

FIRST = 1
"""First revision of a fork."""


class SqlThreads:
    """Threads and notes of a ``SqlStore``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # --- threads ---

    @reads
    async def thread(
        self,
        connection: AsyncConnection,
        key: ThreadKey,
        since: str | None = None,
        *,
        messages: bool = True,
        notes: Sequence[str] = (),
    ) -> ThreadDelta | None:
        return await read_thread(connection, key, since, messages=messages, notes=notes)

    @reads
    async def messages(
        self,
        connection: AsyncConnection,
        key: ThreadKey,
        *,
        limit: int = PAGE,
        before: str | None = None,
        last: str | None = None,
    ) -> Page[StoredMessage] | None:
        thread: int | None = await connection.scalar(select(THREADS.c.number).where(is_thread(key)))
        if thread is None:
            return None
        candidates = select(MESSAGES.c.digest, MESSAGES.c.position, func.length(MESSAGES.c.data).label("size"))
        candidates = candidates.where(MESSAGES.c.thread == thread)
        if (end := before or last) is not None:
            there = select(MESSAGES.c.position).where(MESSAGES.c.thread == thread, MESSAGES.c.digest == digest_of(end))
            position = await connection.scalar(there)
            if position is None:
                raise BadToken("not a message of this thread")
            at = MESSAGES.c.position
            candidates = candidates.where(at <= position if before is None else at < position)
        rows = (await connection.execute(_page_query(candidates, thread, limit))).all()
        earlier = exists().where(MESSAGES.c.thread == thread, MESSAGES.c.position < (rows[0].position if rows else 0))
        has_earlier = bool(rows) and await connection.scalar(select(earlier))
        items = [StoredMessage(row.message_id, row.data, row.run_id) for row in rows]
        return Page(items, items[0].id if has_earlier else None)

    @reads
    async def threads(
        self, connection: AsyncConnection, owner: str, *, limit: int = PAGE, page: str | None = None
    ) -> Page[ThreadRecord]:
        query = select(*THREAD_FACTS).where(THREADS.c.owner == owner).limit(limit + 1)
        if page is not None:
            changed_at, number = parse_last_token(page)
            earlier = and_(THREADS.c.changed_at == changed_at, THREADS.c.number < number)
            query = query.where(or_(THREADS.c.changed_at < changed_at, earlier))
        newest = query.order_by(THREADS.c.changed_at.desc(), THREADS.c.number.desc())
        rows = (await connection.execute(newest)).all()
        items, next_token = make_page(rows, limit, lambda row: make_last_token(row.changed_at, row.number))
        return Page([thread_record(row) for row in items], next_token)

    @writes
    async def edit(
        self, connection: AsyncConnection, key: ThreadKey, edit: Rename | Fork | Delete
    ) -> ThreadRecord | None:
        thread = await lock_thread(connection, key)
        if thread is None:
            return None
        match edit:
            case Rename():
                await touch(connection, thread, title=edit.title)
                return await _record(connection, key)
            case Delete():
                record = await _record(connection, key)
                await connection.execute(delete(THREADS).where(THREADS.c.number == thread))
                return record
            case Fork():
                return await _fork(connection, key, thread, edit)

    # --- notes ---

    @reads
    async def notes(self, connection: AsyncConnection, thread: ThreadKey, *kinds: str) -> Sequence[ThreadNote]:
        return await read_notes(connection, number_of(thread), kinds)

    @writes
    async def put_notes(self, connection: AsyncConnection, thread: ThreadKey, notes: Sequence[ThreadNote]) -> bool:
        number = await lock_thread(connection, thread)
        if number is not None:
            await write_notes(connection, number, notes)
        return number is not None

    @writes
    async def settle_note(self, connection: AsyncConnection, thread: ThreadKey, note: ThreadNote) -> bool:
        """Replace a note by one conditional UPDATE, so that one of several answers succeeds."""
        is_open = and_(NOTES.c.digest == digest_of(note.kind, note.id), NOTES.c.settled.is_(False))
        statement = update(NOTES).where(NOTES.c.thread == number_of(thread), is_open)
        result = await connection.execute(statement.values(settled=True, data=note.data, until=note.until))
        return result.rowcount == 1


async def read_thread(
    connection: AsyncConnection,
    key: ThreadKey,
    since: str | None = None,
    *,
    messages: bool = True,
    notes: Sequence[str] = (),
) -> ThreadDelta | None:
    """Return the changes of a thread since a token, or None if there is no such thread."""
    row = (await connection.execute(select(*THREAD_FACTS, *REVISIONS).where(is_thread(key)))).first()
    if row is None:
        return None
    revision = parse_revision(since, row.number)
    ordered = messages and (revision is None or row.order_revision > revision)
    return ThreadDelta(
        thread_record(row),
        await _messages(connection, row.number, revision) if messages else [],
        await _order(connection, row.number) if ordered else None,
        row.state if revision is None or row.state_revision > revision else None,
        make_revision(row.number, row.revision),
        await read_notes(connection, row.number, notes) if notes else (),
        revision is None,
    )


async def read_notes(
    connection: AsyncConnection, thread: ColumnElement[int] | int, kinds: Collection[str]
) -> list[ThreadNote]:
    """Return the notes of a thread, in the order in which they were first stored."""
    query = select(*NOTE).where(NOTES.c.thread == thread, NOTES.c.kind.in_(kinds)).order_by(NOTES.c.number)
    return [ThreadNote(*row) for row in await connection.execute(query)]


async def _record(connection: AsyncConnection, key: ThreadKey) -> ThreadRecord:
    return thread_record((await connection.execute(select(*THREAD_FACTS).where(is_thread(key)))).one())


async def _messages(connection: AsyncConnection, thread: int, revision: int | None) -> Sequence[StoredMessage]:
    query = select(*MESSAGE).where(MESSAGES.c.thread == thread)
    if revision is not None:
        query = query.where(MESSAGES.c.revision > revision)
    return [StoredMessage(*row) for row in await connection.execute(query.order_by(MESSAGES.c.position))]


def _page_query(candidates: Select[*tuple[object, ...]], thread: int, limit: int) -> Select[*tuple[object, ...]]:
    """Return the query of the last messages. Only their sizes are summed, so that no other message is read."""
    last = candidates.order_by(MESSAGES.c.position.desc()).limit(limit).subquery()
    later = func.sum(last.c.size).over(order_by=last.c.position.desc()) - last.c.size
    summed = select(last.c.digest, later.label("later")).subquery()
    page = select(*MESSAGE, MESSAGES.c.position).join(summed, MESSAGES.c.digest == summed.c.digest)
    return page.where(MESSAGES.c.thread == thread, summed.c.later < READ_BYTES).order_by(MESSAGES.c.position)


async def _order(connection: AsyncConnection, thread: int) -> Sequence[str]:
    ids = select(MESSAGES.c.message_id).where(MESSAGES.c.thread == thread).order_by(MESSAGES.c.position)
    return (await connection.scalars(ids)).all()


async def _fork(connection: AsyncConnection, source: ThreadKey, thread: int, fork: Fork) -> ThreadRecord:
    position, key = await _fork_position(connection, thread, fork.message_id), ThreadKey(source.owner, fork.thread_id)
    values = {
        **key._asdict(),
        "forked_thread": source.thread_id,
        "forked_message": fork.message_id,
        "created_at": fork.created_at,
        "changed_at": fork.created_at,
        "status": fork.status,
    }
    is_new = await _copy_thread(connection, thread, position, values)
    record = await _record(connection, key)
    if not is_new and record.forked_from != (source.thread_id, fork.message_id):
        raise CannotFork("the new thread's id is taken", id_exists=True)
    return record


async def _fork_position(connection: AsyncConnection, thread: int, message_id: str) -> int:
    """Return the position of a message. Raises ``CannotFork``, also while its run is active."""
    query = select(MESSAGES.c.position, MESSAGES.c.run_id)
    found = await connection.execute(
        query.where(MESSAGES.c.thread == thread, MESSAGES.c.digest == digest_of(message_id))
    )
    row = found.first()
    if row is None:
        raise CannotFork("no such message")
    active = select(RUNS.c.run_id).where(RUNS.c.thread == thread, RUNS.c.status == RunStatus.RUNNING)
    if row.run_id is not None and row.run_id == await connection.scalar(active):
        raise CannotFork("the message's run is active", active=True)
    position: int = row.position
    return position


async def _copy_thread(connection: AsyncConnection, thread: int, position: int, values: Mapping[str, object]) -> bool:
    """Create the new thread with a copy of the history. Return False if its id is taken."""
    source: Row[str | None, bytes | None] = (
        await connection.execute(select(THREADS.c.title, THREADS.c.state).where(THREADS.c.number == thread))
    ).one()
    new = insert(connection.dialect.name, THREADS).values(
        digest=digest_of(str(values["owner"]), str(values["thread_id"])),
        title=source[0],
        state=source[1],
        revision=FIRST,
        **values,
    )
    statement = new.on_conflict_do_nothing(index_elements=["digest"]).returning(THREADS.c.number)
    number: int | None = await connection.scalar(statement)
    if number is None:
        return False
    columns = ("digest", "message_id", "position", "data")
    history = select(literal(number), literal(FIRST), *(MESSAGES.c[name] for name in columns))
    copied = history.where(MESSAGES.c.thread == thread, MESSAGES.c.position <= position)
    await connection.execute(plain_insert(MESSAGES).from_select(["thread", "revision", *columns], copied))
    return True
