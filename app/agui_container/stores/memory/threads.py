"""Threads, the goals of their turns and the feedback on their messages, in memory."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import dropwhile, islice

from msgspec.structs import replace

from agui_container.ports.records import (
    Change,
    Feedback,
    GoalStatus,
    Page,
    Review,
    RunKey,
    StoredGoal,
    StoredMessage,
    ThreadDelta,
    ThreadKey,
    ThreadRecord,
    Triage,
    merge_metadata,
)
from agui_container.ports.store import PAGE, READ_BYTES, BadToken, CannotFork, Fork
from agui_container.stores.memory.data import MemoryData, MemoryThread
from agui_container.stores.page_tokens import (
    make_last_token,
    make_page,
    make_revision,
    parse_last_token,
    parse_number,
    parse_revision,
)


class MemoryThreads:
    """``ThreadStore`` in memory.

    Args:
        data: all threads and runs.
        on_delete: deletes data of a thread that is stored elsewhere.
    """

    def __init__(self, data: MemoryData, on_delete: Callable[[ThreadKey], None]) -> None:
        self._data = data
        self._on_delete = on_delete

    async def get(self, key: ThreadKey) -> ThreadRecord | None:
        """Return the record of a thread, or None."""
        thread = self._data.threads.get(key)
        return thread.record if thread else None

    async def list(self, owner: str, *, limit: int = PAGE, page: str | None = None) -> Page[ThreadRecord]:
        """List a page of an owner's threads, last changed first. Raises ``BadToken``."""
        below = None if page is None else parse_last_token(page)
        newest = self._data.threads_by_owner.last_first(owner, below)
        items, next_token = make_page(list(islice(newest, limit + 1)), limit, lambda it: make_last_token(*it[0]))
        return Page([thread.record for _, thread in items], next_token)

    async def changes(self, key: ThreadKey, since: str | None = None, *, messages: bool = True) -> ThreadDelta | None:
        """Return the changes of a thread since a token, or None if there is no such thread."""
        thread = self._data.threads.get(key)
        if thread is None:
            return None
        revision = parse_revision(since, thread.number)
        after = -1 if revision is None else revision
        items = thread.messages if messages else {}
        return ThreadDelta(
            thread.record,
            list(items.values()) if revision is None else changed_messages(thread, items, revision),
            list(items) if messages and thread.order_revision > after else None,
            thread.state if thread.state_revision > after else None,
            all_goals(thread) if thread.goals_revision > after else None,
            make_revision(thread.number, thread.revision),
        )

    async def has_messages(self, key: ThreadKey) -> bool:
        """Return True if the thread exists and has messages."""
        thread = self._data.threads.get(key)
        return thread is not None and bool(thread.messages)

    async def message(self, key: ThreadKey, message_id: str) -> StoredMessage | None:
        """Return a message of a thread, or None."""
        thread = self._data.threads.get(key)
        return thread.messages.get(message_id) if thread else None

    async def messages(
        self, key: ThreadKey, *, limit: int = PAGE, before: str | None = None
    ) -> Page[StoredMessage] | None:
        """Return the last messages of a thread, or those before a message. Raises ``BadToken``."""
        thread = self._data.threads.get(key)
        if thread is None:
            return None
        newest: Iterable[StoredMessage] = reversed(thread.messages.values())
        if before is not None:
            if before not in thread.messages:
                raise BadToken("not a message of this thread")
            newest = islice(dropwhile(lambda message: message.id != before, newest), 1, None)
        return last_messages(newest, limit)

    async def rename(self, key: ThreadKey, title: str | None, now: float) -> bool:
        """Set the title of a thread. Return False if there is no such thread."""
        thread = self._data.threads.get(key)
        if thread is not None:
            thread.touch(replace(thread.record, changed_at=now, title=title))
            self._data.change(thread, Change())
        return thread is not None

    async def annotate(self, key: ThreadKey, notes: Mapping[str, object]) -> bool:
        """Merge notes into the metadata of a thread. Return False if there is no such thread."""
        thread = self._data.threads.get(key)
        if thread is not None:
            self._data.annotate(thread, merge_metadata(thread.record.metadata, notes))
        return thread is not None

    async def fork(self, fork: Fork) -> ThreadRecord:
        """Create a thread with the history up to and including a message. Raises ``CannotFork``."""
        thread = self._data.threads.get(fork.source)
        message = thread.messages.get(fork.message_id) if thread else None
        if thread is None or message is None:
            raise CannotFork("no such thread or message")
        if message.run_id is not None and message.run_id == thread.record.active_run:
            raise CannotFork("the message's run is active", active=True)
        existing = self._data.threads.get(fork.key)
        if existing is not None:
            if existing.record.forked_from != fork.origin:
                raise CannotFork("the new thread's id is taken", id_exists=True)
            return existing.record
        at, title = fork.created_at, thread.record.title
        record = ThreadRecord(fork.key, fork.status, at, at, title, forked_from=fork.origin)
        return self._copy_thread(thread, fork.message_id, record)

    def _copy_thread(self, thread: MemoryThread, message_id: str, record: ThreadRecord) -> ThreadRecord:
        ids = list(thread.messages)
        history = [replace(thread.messages[name], run_id=None) for name in ids[: ids.index(message_id) + 1]]
        fork = self._data.create_thread(record)
        fork.touch(record)
        self._data.change(fork, Change(history, state=thread.state))
        return fork.record

    def restore(self, record: ThreadRecord, change: Change) -> None:
        """Apply a change that was read from elsewhere. A thread that is not in memory is created from ``record``."""
        thread = self._data.threads.get(record.key) or self._data.create_thread(record)
        thread.touch(thread.record)
        self._data.change(thread, change)
        if thread.record.metadata is None:
            self._data.annotate(thread, record.metadata)

    async def delete(self, key: ThreadKey) -> bool:
        """Delete a thread with all its data. Return True if it existed."""
        thread = self._data.threads.get(key)
        if thread is not None:
            self._data.remove(thread)
        self._on_delete(key)
        return thread is not None


def changed_messages(
    thread: MemoryThread, items: Mapping[str, StoredMessage], revision: int
) -> Sequence[StoredMessage]:
    """Return the messages that have changed after a revision."""
    return [message for name, message in items.items() if thread.revisions[name] > revision]


def last_messages(newest: Iterable[StoredMessage], limit: int) -> Page[StoredMessage]:
    """Return the first of these messages, which are sorted from the newest on, as a page of the thread."""
    items, size = list[StoredMessage](), 0
    for message in newest:
        if len(items) == limit or size >= READ_BYTES:
            return Page(items[::-1], items[-1].id)
        items.append(message)
        size += len(message.data)
    return Page(items[::-1])


def all_goals(thread: MemoryThread) -> Sequence[StoredGoal]:
    """Return all goals of a thread, oldest first."""
    return [goal for goals in thread.goals.values() for goal in goals.values()]


class MemoryGoals:
    """``GoalStore`` in memory."""

    def __init__(self, data: MemoryData) -> None:
        self._data = data

    async def declare(self, run: RunKey, goals: Sequence[StoredGoal]) -> None:
        """Store the goals of a run, except those that it has already."""
        if goals and run in self._data.runs:
            thread = self._data.threads[run.thread]
            known = thread.goals.get(run.run_id, {})
            self._put(thread, run, [replace(goal, run_id=run.run_id) for goal in goals if goal.index not in known])

    async def conclude(
        self, run: RunKey, index: int, status: GoalStatus, now: float, *, result: bytes | None = None
    ) -> None:
        """Set the outcome of a goal that is pending."""
        thread = self._data.threads.get(run.thread)
        goal = thread.goals.get(run.run_id, {}).get(index) if thread else None
        if thread is not None and goal is not None and goal.status is GoalStatus.PENDING:
            self._put(thread, run, [replace(goal, status=status, result=result, concluded_at=now)])

    def _put(self, thread: MemoryThread, run: RunKey, goals: Sequence[StoredGoal]) -> None:
        thread.put_goals(run.run_id, goals)
        self._data.resize(thread)


class MemoryFeedbacks:
    """``FeedbackStore`` in memory."""

    def __init__(self, data: MemoryData) -> None:
        self._data = data

    async def put(self, thread: ThreadKey, feedback: Feedback) -> Feedback | None:
        """Store feedback and replace earlier feedback on the same message. Return None if there is no such message."""
        found = self._data.threads.get(thread)
        if found is None or feedback.message_id not in found.messages:
            return None
        stored = found.put_feedback(feedback, self._data.next_number())
        self._data.resize(found)
        return stored

    async def list_for(self, thread: ThreadKey) -> Sequence[Feedback]:
        """List the feedback on the messages of a thread, oldest first."""
        found = self._data.threads.get(thread)
        return [review.feedback for _, review in found.reviews.values()] if found else []

    async def reviews(self, *, resolved: bool | None = None, page: str | None = None) -> Page[Review]:
        """List a page of feedback of all owners, newest first. Raises ``BadToken``."""
        below = None if page is None else parse_number(page)
        matching = [
            (number, review)
            for thread in self._data.threads.values()
            for number, review in thread.reviews.values()
            if resolved in (None, review.triage.resolved_at is not None) and (below is None or number < below)
        ]
        newest = sorted(matching, key=lambda it: it[0], reverse=True)
        items, next_token = make_page(newest, PAGE, lambda it: str(it[0]))
        return Page([review for _, review in items], next_token)

    async def triage(self, thread: ThreadKey, message_id: str, triage: Triage) -> Review | None:
        """Replace the triage of a feedback. Return None if there is no such feedback."""
        found = self._data.threads.get(thread)
        if found is None or message_id not in found.reviews:
            return None
        number, review = found.reviews[message_id]
        found.reviews[message_id] = (number, replace(review, triage=triage))
        return found.reviews[message_id][1]
