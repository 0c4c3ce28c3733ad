"""Feedback of users on messages, in a database.

Rule: the triage of operators is returned only as part of a ``Review``.
"""

import json
from collections.abc import Sequence

from sqlalchemy import Row, select, update

from agui_container.ports.records import Feedback, Page, Review, ThreadKey, Triage
from agui_container.ports.store import PAGE
from agui_container.stores.page_tokens import make_page, parse_number
from agui_container.stores.sql.database import Database, uncancellable
from agui_container.stores.sql.rows import insert, is_thread, lock_thread
from agui_container.stores.sql.schema import FEEDBACK, MESSAGES, THREADS, digest_of


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
