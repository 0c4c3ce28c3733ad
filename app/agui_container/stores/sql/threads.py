"""Threads, the goals of their turns and the feedback on their messages, in a database.

Rules: a delta contains everything with a later revision than the one in the token. A change of a goal changes its
thread. The triage of operators is returned only as part of a ``Review``.
"""

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import Row, Select, and_, delete, exists, func, literal, or_, select, update
from sqlalchemy import insert as plain_insert
from sqlalchemy.ext.asyncio import AsyncConnection

from agui_container.ports.records import (
    Feedback,
    GoalStatus,
    Page,
    Review,
    RunKey,
    RunStatus,
    StoredGoal,
    StoredMessage,
    ThreadDelta,
    ThreadKey,
    ThreadRecord,
    Triage,
    merge_metadata,
)
from agui_container.ports.store import PAGE, READ_BYTES, BadToken, CannotFork, Fork
from agui_container.stores.page_tokens import (
    make_last_token,
    make_page,
    make_revision,
    parse_last_token,
    parse_number,
    parse_revision,
)
from agui_container.stores.sql.database import Database, uncancellable
from agui_container.stores.sql.rows import (
    THREAD_FACTS,
    goal_record,
    insert,
    is_run,
    is_thread,
    lock_thread,
    number_of,
    thread_record,
    touch,
)
from agui_container.stores.sql.schema import FEEDBACK, GOALS, INTERRUPTS, MESSAGES, RUNS, THREADS, digest_of

REVISIONS = (THREADS.c.state_revision, THREADS.c.order_revision, THREADS.c.goals_revision, THREADS.c.state)

MESSAGE = (MESSAGES.c.message_id, MESSAGES.c.data, MESSAGES.c.run_id)
"""Columns of a ``StoredMessage``, in the order of its fields."""

FIRST = 1
"""First revision of a fork."""


class SqlThreads:
    """``ThreadStore`` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @uncancellable
    async def get(self, key: ThreadKey) -> ThreadRecord | None:
        """Return the record of a thread, or None."""
        async with self._database.read_transaction() as connection:
            row = (await connection.execute(select(*THREAD_FACTS).where(is_thread(key)))).first()
        return thread_record(row) if row else None

    @uncancellable
    async def list(self, owner: str, *, limit: int = PAGE, page: str | None = None) -> Page[ThreadRecord]:
        """List a page of an owner's threads, last changed first. Raises ``BadToken``."""
        query = select(*THREAD_FACTS).where(THREADS.c.owner == owner).limit(limit + 1)
        if page is not None:
            changed_at, number = parse_last_token(page)
            earlier = and_(THREADS.c.changed_at == changed_at, THREADS.c.number < number)
            query = query.where(or_(THREADS.c.changed_at < changed_at, earlier))
        async with self._database.read_transaction() as connection:
            newest = query.order_by(THREADS.c.changed_at.desc(), THREADS.c.number.desc())
            rows = (await connection.execute(newest)).all()
        items, next_token = make_page(rows, limit, lambda row: make_last_token(row.changed_at, row.number))
        return Page([thread_record(row) for row in items], next_token)

    @uncancellable
    async def changes(self, key: ThreadKey, since: str | None = None, *, messages: bool = True) -> ThreadDelta | None:
        """Return the changes of a thread since a token, or None if there is no such thread."""
        async with self._database.read_transaction() as connection:
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
                await _goals(connection, row.number) if revision is None or row.goals_revision > revision else None,
                make_revision(row.number, row.revision),
            )

    @uncancellable
    async def has_messages(self, key: ThreadKey) -> bool:
        """Return True if the thread exists and has messages."""
        async with self._database.read_transaction() as connection:
            return bool(await connection.scalar(select(exists().where(MESSAGES.c.thread == number_of(key)))))

    @uncancellable
    async def message(self, key: ThreadKey, message_id: str) -> StoredMessage | None:
        """Return a message of a thread, or None."""
        query = select(*MESSAGE).where(MESSAGES.c.thread == number_of(key), MESSAGES.c.digest == digest_of(message_id))
        async with self._database.read_transaction() as connection:
            row = (await connection.execute(query)).first()
        return StoredMessage(*row) if row else None

    @uncancellable
    async def messages(
        self, key: ThreadKey, *, limit: int = PAGE, before: str | None = None
    ) -> Page[StoredMessage] | None:
        """Return the last messages of a thread, or those before a message. Raises ``BadToken``."""
        async with self._database.read_transaction() as connection:
            thread = await connection.scalar(select(THREADS.c.number).where(is_thread(key)))
            return None if thread is None else await _messages_before(connection, thread, limit, before)

    @uncancellable
    async def rename(self, key: ThreadKey, title: str | None, now: float) -> bool:
        """Set the title of a thread. Return False if there is no such thread."""
        async with self._database.write_transaction() as connection:
            thread = await lock_thread(connection, key)
            if thread is not None:
                await touch(connection, thread, title=title, changed_at=now)
            return thread is not None

    @uncancellable
    async def annotate(self, key: ThreadKey, notes: Mapping[str, object]) -> bool:
        """Merge notes into the metadata of a thread. Return False if there is no such thread."""
        async with self._database.write_transaction() as connection:
            thread = await lock_thread(connection, key)
            if thread is not None:
                metadata = await connection.scalar(select(THREADS.c.metadata).where(THREADS.c.number == thread))
                await touch(connection, thread, metadata=merge_metadata(metadata, notes))
            return thread is not None

    @uncancellable
    async def delete(self, key: ThreadKey) -> bool:
        """Delete a thread with all its data. Return True if it existed."""
        async with self._database.write_transaction() as connection:
            removed = await connection.execute(delete(THREADS).where(is_thread(key)))
            await connection.execute(delete(INTERRUPTS).where(INTERRUPTS.c.thread == digest_of(*key)))
            return removed.rowcount == 1

    @uncancellable
    async def fork(self, fork: Fork) -> ThreadRecord:
        """Create a thread with the history up to and including a message. Raises ``CannotFork``."""
        async with self._database.write_transaction() as connection:
            thread = await lock_thread(connection, fork.source)
            position = None if thread is None else await _fork_position(connection, thread, fork.message_id)
            if thread is None or position is None:
                raise CannotFork("no such thread or message")
            origin = dict(zip(("forked_thread", "forked_message"), fork.origin, strict=True))
            times = {"created_at": fork.created_at, "changed_at": fork.created_at}
            values = {**fork.key._asdict(), **origin, **times, "status": fork.status}
            is_new = await _copy_thread(connection, thread, position, values)
            record = thread_record((await connection.execute(select(*THREAD_FACTS).where(is_thread(fork.key)))).one())
            if not is_new and record.forked_from != fork.origin:
                raise CannotFork("the new thread's id is taken", id_exists=True)
            return record


# --- reading ----------------------------------------------------------------------------------------------------------


async def _messages(connection: AsyncConnection, thread: int, revision: int | None) -> Sequence[StoredMessage]:
    query = select(*MESSAGE).where(MESSAGES.c.thread == thread)
    if revision is not None:
        query = query.where(MESSAGES.c.revision > revision)
    return [StoredMessage(*row) for row in await connection.execute(query.order_by(MESSAGES.c.position))]


async def _messages_before(
    connection: AsyncConnection, thread: int, limit: int, before: str | None
) -> Page[StoredMessage]:
    candidates = select(MESSAGES.c.digest, MESSAGES.c.position, func.length(MESSAGES.c.data).label("size"))
    candidates = candidates.where(MESSAGES.c.thread == thread)
    if before is not None:
        there = select(MESSAGES.c.position).where(MESSAGES.c.thread == thread, MESSAGES.c.digest == digest_of(before))
        position = await connection.scalar(there)
        if position is None:
            raise BadToken("not a message of this thread")
        candidates = candidates.where(MESSAGES.c.position < position)
    rows = (await connection.execute(_page_query(candidates, thread, limit))).all()
    earlier = exists().where(MESSAGES.c.thread == thread, MESSAGES.c.position < (rows[0].position if rows else 0))
    has_earlier = bool(rows) and await connection.scalar(select(earlier))
    items = [StoredMessage(row.message_id, row.data, row.run_id) for row in rows]
    return Page(items, items[0].id if has_earlier else None)


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


async def _goals(connection: AsyncConnection, thread: int) -> Sequence[StoredGoal]:
    query = select(GOALS, RUNS.c.run_id).join(RUNS, RUNS.c.number == GOALS.c.run).where(RUNS.c.thread == thread)
    return [goal_record(row) for row in await connection.execute(query.order_by(RUNS.c.number, GOALS.c.place))]


# --- forks ------------------------------------------------------------------------------------------------------------


async def _fork_position(connection: AsyncConnection, thread: int, message_id: str) -> int | None:
    """Return the position of a message, or None. Raises ``CannotFork`` while its run is active."""
    query = select(MESSAGES.c.position, MESSAGES.c.run_id)
    found = await connection.execute(
        query.where(MESSAGES.c.thread == thread, MESSAGES.c.digest == digest_of(message_id))
    )
    row = found.first()
    if row is None:
        return None
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


class SqlGoals:
    """``GoalStore`` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @uncancellable
    async def declare(self, run: RunKey, goals: Sequence[StoredGoal]) -> None:
        """Store the goals of a run, except those that it has already."""
        async with self._database.write_transaction() as connection:
            thread = await lock_thread(connection, run.thread)
            number = await connection.scalar(select(RUNS.c.number).where(is_run(run)))
            if thread is None or number is None or not goals:
                return
            rows = [
                {
                    "run": number,
                    "place": goal.index,
                    "type": goal.type,
                    "schema": goal.schema,
                    "status": goal.status,
                    "result": goal.result,
                    "created_at": goal.created_at,
                    "concluded_at": goal.concluded_at,
                }
                for goal in goals
            ]
            await connection.execute(insert(connection.dialect.name, GOALS).on_conflict_do_nothing(), rows)
            await touch(connection, thread, goals_revision=THREADS.c.revision + 1)

    @uncancellable
    async def conclude(
        self, run: RunKey, index: int, status: GoalStatus, now: float, *, result: bytes | None = None
    ) -> None:
        """Set the outcome of a goal that is pending."""
        async with self._database.write_transaction() as connection:
            thread = await lock_thread(connection, run.thread)
            number = select(RUNS.c.number).where(is_run(run)).scalar_subquery()
            pending = update(GOALS).where(GOALS.c.run == number, GOALS.c.place == index, GOALS.c.status == "pending")
            ended = await connection.execute(pending.values(status=status, result=result, concluded_at=now))
            if thread is not None and ended.rowcount:
                await touch(connection, thread, goals_revision=THREADS.c.revision + 1)


class SqlFeedbacks:
    """``FeedbackStore`` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @uncancellable
    async def put(self, thread: ThreadKey, feedback: Feedback) -> Feedback | None:
        """Store feedback and replace earlier feedback on the same message. Return None if there is no such message."""
        name = digest_of(feedback.message_id)
        values = {
            "sentiment": feedback.sentiment,
            "categories": json.dumps(list(feedback.categories)),
            "notes": feedback.notes,
            "changed_at": feedback.changed_at,
        }
        async with self._database.write_transaction() as connection:
            number = await lock_thread(connection, thread)
            message = select(MESSAGES.c.thread).where(MESSAGES.c.thread == number, MESSAGES.c.digest == name)
            if number is None or await connection.scalar(message) is None:
                return None
            row = {"thread": number, "digest": name, "message_id": feedback.message_id, **values}
            new = insert(connection.dialect.name, FEEDBACK).values(created_at=feedback.created_at, **row)
            put = new.on_conflict_do_update(index_elements=["thread", "digest"], set_=values)
            return _feedback((await connection.execute(put.returning(FEEDBACK))).one())

    @uncancellable
    async def list_for(self, thread: ThreadKey) -> Sequence[Feedback]:
        """List the feedback on the messages of a thread, oldest first."""
        query = select(FEEDBACK).join(THREADS).where(is_thread(thread)).order_by(FEEDBACK.c.number)
        async with self._database.read_transaction() as connection:
            return [_feedback(row) for row in await connection.execute(query)]

    @uncancellable
    async def reviews(self, *, resolved: bool | None = None, page: str | None = None) -> Page[Review]:
        """List a page of feedback of all owners, newest first. Raises ``BadToken``."""
        query = select(FEEDBACK, THREADS.c.owner, THREADS.c.thread_id).join(THREADS)
        if resolved is not None:
            at = FEEDBACK.c.resolved_at
            query = query.where(at.is_not(None) if resolved else at.is_(None))
        if page is not None:
            query = query.where(FEEDBACK.c.number < parse_number(page))
        async with self._database.read_transaction() as connection:
            newest = query.order_by(FEEDBACK.c.number.desc()).limit(PAGE + 1)
            rows = (await connection.execute(newest)).all()
        items, next_token = make_page(rows, PAGE, lambda row: str(row.number))
        return Page([_review(ThreadKey(row.owner, row.thread_id), row) for row in items], next_token)

    @uncancellable
    async def triage(self, thread: ThreadKey, message_id: str, triage: Triage) -> Review | None:
        """Replace the triage of a feedback. Return None if there is no such feedback."""
        number = select(THREADS.c.number).where(is_thread(thread)).scalar_subquery()
        row = update(FEEDBACK).where(FEEDBACK.c.thread == number, FEEDBACK.c.digest == digest_of(message_id))
        values = {
            "label": triage.label,
            "note": triage.note,
            "resolved_by": triage.resolved_by,
            "resolved_at": triage.resolved_at,
        }
        async with self._database.write_transaction() as connection:
            found = (await connection.execute(row.values(values).returning(FEEDBACK))).first()
        return _review(thread, found) if found else None


def _feedback(row: Row[*tuple[object, ...]]) -> Feedback:
    categories = tuple(json.loads(row.categories))
    return Feedback(row.message_id, row.sentiment, categories, row.notes, row.created_at, row.changed_at)


def _review(thread: ThreadKey, row: Row[*tuple[object, ...]]) -> Review:
    return Review(thread, _feedback(row), Triage(row.label, row.note, row.resolved_by, row.resolved_at))
