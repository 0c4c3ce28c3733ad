"""Commands on threads: list, get, delta, transcript, rename, fork, delete, feedback.

Rule: a caller can use the threads of its own scope only. Any other thread is THREAD_NOT_FOUND. Views are built field by
field (``views``), so internal fields of the store do not reach clients.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import ParamSpec, Protocol, TypeVar

from ag_ui.core import Interrupt, Message
from msgspec.structs import replace

from agui_container.engine.admission.quota import Limit, Quota, QuotaLease
from agui_container.engine.persistence.cluster import Cluster
from agui_container.engine.persistence.entries import copy_entries, entries_after, entries_of, entries_view
from agui_container.engine.service import View
from agui_container.engine.threads.search import threads_with
from agui_container.engine.threads.turns import messages_since, turn_after_message
from agui_container.engine.threads.views import (
    delta_view,
    feedback_view,
    interrupt_view,
    parse_messages,
    shown_thread_view,
    thread_view,
    transcript_view,
)
from agui_container.ports import Caller, ThreadCleanup
from agui_container.ports.records import (
    Feedback,
    Page,
    StoredMessage,
    ThreadDelta,
    ThreadKey,
    ThreadRecord,
    size_of_feedback,
)
from agui_container.ports.store import BadToken, CannotFork, Fork, store_errors_as_app_errors
from agui_container.protocol.commands import (
    MAX_PAGE,
    ThreadCommand,
    ThreadsDelete,
    ThreadsDelta,
    ThreadsFeedback,
    ThreadsFork,
    ThreadsGet,
    ThreadsList,
    ThreadsRename,
    ThreadsTranscript,
)
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.log_values import format_fields
from agui_container.runtime.offload import offload_if_large

CANCEL_SECONDS = 2.0
"""Longest wait of a deletion for the end of the thread's active run."""

POLL_SECONDS = 0.01
"""Pause between two checks if the active run has ended."""

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)


class RunControl(Protocol):
    """The operations on runs that thread commands need."""

    async def cancel(self, caller: Caller, thread_id: str | None, run_id: str | None) -> object:
        """Cancel a run. Raises ``AppError`` RUN_NOT_FOUND."""

    async def waiting(self, caller: Caller, thread_id: str) -> Sequence[Interrupt]:
        """Return the unanswered interrupts of a thread."""

    def forget_thread(self, thread: ThreadKey) -> None:
        """Remove the ended runs of a deleted thread from memory."""


class ThreadCommands:
    """Executes the commands of callers on threads.

    Args:
        cluster: the store and the clock.
        quota: counts the bytes of large results.
        new_id: makes the ids of forks.
        runs: finds the interrupts of a thread, and ends and removes the runs of a deleted one.
        thread_cleanup: the agent, if it stores data of threads by itself.
    """

    def __init__(
        self,
        cluster: Cluster,
        quota: Quota,
        new_id: Callable[[], str],
        runs: RunControl,
        thread_cleanup: ThreadCleanup | None = None,
    ) -> None:
        self._cluster = cluster
        self._quota = quota
        self._new_id = new_id
        self._runs = runs
        self._thread_cleanup = thread_cleanup

    @asynccontextmanager
    async def answer(self, caller: Caller, command: ThreadCommand) -> AsyncIterator[View]:
        """Execute a command on the caller's threads. Provides the JSON object of the response.

        The bytes of a large thread count as those of the result from the time at which the store has read it, until the
        end of the block. So a thread for which there is no room is refused before the result is built.

        Raises:
            AppError: THREAD_NOT_FOUND, THREAD_BUSY, VALIDATION_ERROR, STORE_UNAVAILABLE, RATE_LIMIT_EXCEEDED.
        """
        with QuotaLease(self._quota.of(caller.identity), Limit.BYTES_IN_FLIGHT) as lease:
            with store_errors_as_app_errors():
                view = await self._execute(caller, command, lease)
            yield view

    async def _execute(  # noqa: PLR0911 - a case for each command
        self, caller: Caller, command: ThreadCommand, lease: QuotaLease
    ) -> View:
        if isinstance(command, ThreadsList):
            return await self._list(caller.owner, command)
        key = ThreadKey(caller.owner, command.thread_id)
        match command:
            case ThreadsGet():
                return await self._get(caller, key, command, lease)
            case ThreadsDelta():
                delta = await self._changes(key, command.since)
                return await count_and_build(lease, caller, delta.size, delta_view, delta)
            case ThreadsTranscript():
                delta = await self._changes(key)
                text = await count_and_build(lease, caller, delta.size, transcript_view, delta)
                return {"threadId": key.thread_id, "transcript": text}
            case ThreadsRename():
                return await self._rename(key, command.title)
            case ThreadsFork():
                return await self._fork(key, command)
            case ThreadsFeedback():
                return await self._feedback(key, command)
            case ThreadsDelete():
                return await self._delete(caller, key)

    async def record(self, caller: Caller, thread_id: str) -> ThreadRecord:
        """Return the record of a thread. Raises ``AppError`` THREAD_NOT_FOUND, STORE_UNAVAILABLE."""
        with store_errors_as_app_errors():
            record = await self._cluster.store.threads.get(ThreadKey(caller.owner, thread_id))
        if record is None:
            raise thread_not_found()
        return record

    async def waiting(self, caller: Caller, thread_id: str) -> Sequence[Interrupt]:
        """Return the interrupts of a thread that wait for an answer. Raises ``AppError`` STORE_UNAVAILABLE."""
        with store_errors_as_app_errors():
            return await self._runs.waiting(caller, thread_id)

    async def delta(
        self, caller: Caller, thread_id: str, since: str | None = None, *, messages: bool = True
    ) -> ThreadDelta:
        """Return a stored thread, for transports that have their own format of threads.

        ``since`` is the ``next`` of an earlier ``ThreadDelta``; the result then has only the changes after that one.
        Without ``messages`` the result has no messages.

        Raises:
            AppError: THREAD_NOT_FOUND, STORE_UNAVAILABLE.
        """
        with store_errors_as_app_errors():
            return await self._changes(ThreadKey(caller.owner, thread_id), since, messages=messages)

    async def has_messages(self, caller: Caller, thread_id: str) -> bool:
        """Return True if a thread exists and has messages. Raises ``AppError`` STORE_UNAVAILABLE."""
        with store_errors_as_app_errors():
            return await self._cluster.store.threads.has_messages(ThreadKey(caller.owner, thread_id))

    async def last_message(self, caller: Caller, thread_id: str) -> StoredMessage | None:
        """Return the last message of a thread, or None without one. Raises ``AppError`` STORE_UNAVAILABLE."""
        with store_errors_as_app_errors():
            page = await self._cluster.store.threads.messages(ThreadKey(caller.owner, thread_id), limit=1)
        return page.items[-1] if page and page.items else None

    async def messages_since(
        self, caller: Caller, thread_id: str, is_first: Callable[[Message], bool]
    ) -> Sequence[Message]:
        """Return the last messages of a thread, at least from the last one on that is first.

        Raises:
            AppError: STORE_UNAVAILABLE.
        """
        with store_errors_as_app_errors():
            return await messages_since(self._cluster.store.threads, ThreadKey(caller.owner, thread_id), is_first)

    async def annotate(self, caller: Caller, thread_id: str, notes: Mapping[str, object]) -> None:
        """Set entries of a thread's metadata to JSON values. None removes an entry.

        Raises:
            AppError: THREAD_NOT_FOUND, STORE_UNAVAILABLE.
        """
        with store_errors_as_app_errors():
            if not await self._cluster.store.threads.annotate(ThreadKey(caller.owner, thread_id), notes):
                raise thread_not_found()

    # --- reading ---

    async def _list(self, owner: str, command: ThreadsList) -> View:
        try:
            page = await self._cluster.store.threads.list(owner, limit=command.limit, page=command.page)
        except BadToken:
            raise AppError(ErrorCode.VALIDATION_ERROR, "page: must be a 'next' of this list.") from None
        records = page.items
        if command.text is not None:
            records = await threads_with(self._cluster.store.threads, records, command.text)
        threads: View = {"threads": [thread_view(record) for record in records]}
        return threads if page.next is None else {**threads, "next": page.next}

    async def _get(self, caller: Caller, key: ThreadKey, command: ThreadsGet, lease: QuotaLease) -> View:
        waiting = [interrupt_view(it) for it in await self._runs.waiting(caller, command.thread_id)]
        delta = await self._changes(key, messages=command.messages and not command.is_page)
        page = await self._page(key, command) if command.messages and command.is_page else Page(delta.messages)
        delta = replace(delta, messages=page.items)
        lease.resize(delta.size)  # also while the feedback is read
        feedback = await self._cluster.store.feedbacks.list_for(key)
        entries = await entries_of(self._cluster.store.interrupts, key, self._cluster.clock.time())
        if command.is_page:
            entries = entries_after(entries, {message.id for message in page.items}, is_first=page.next is None)
        build = partial(shown_thread_view, with_messages=command.messages)
        view = await count_and_build(lease, caller, delta.size + size_of_feedback(feedback), build, delta, feedback)
        view |= {"waiting": waiting, **entries_view(entries, waiting)}
        return view if page.next is None else {**view, "before": page.next}

    async def _page(self, key: ThreadKey, command: ThreadsGet) -> Page[StoredMessage]:
        """Return a page of messages. It may be newer than the thread's ``continuationToken``, but never older."""
        limit = command.limit or MAX_PAGE
        try:
            page = await self._cluster.store.threads.messages(key, limit=limit, before=command.before)
        except BadToken:
            message = "before: must be the id of a message of this thread."
            raise AppError(ErrorCode.VALIDATION_ERROR, message) from None
        if page is None:
            raise thread_not_found()
        return page

    async def _changes(self, key: ThreadKey, since: str | None = None, *, messages: bool = True) -> ThreadDelta:
        delta = await self._cluster.store.threads.changes(key, since, messages=messages)
        if delta is None:
            raise thread_not_found()
        return delta

    # --- changing ---

    async def _rename(self, key: ThreadKey, title: str | None) -> View:
        """Set the title of a thread, which keeps its place in lists, because nothing was said in it."""
        threads = self._cluster.store.threads
        before = await threads.get(key)
        renamed = before is not None and await threads.rename(key, title, before.changed_at)
        record = await threads.get(key) if renamed else None
        if record is None:
            raise thread_not_found()
        return thread_view(record)

    async def _delete(self, caller: Caller, key: ThreadKey) -> View:
        """Cancel the active run, so that its readers get a terminal event, and delete the thread."""
        with suppress(TimeoutError):  # a replica that misses the command loses the lease when the thread is deleted
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._cancel_run(caller, key)
        await self._clean_up_agent(key)
        if not await self._cluster.store.threads.delete(key):
            raise thread_not_found()
        self._runs.forget_thread(key)
        return {"threadId": key.thread_id, "deleted": True}

    async def _cancel_run(self, caller: Caller, key: ThreadKey) -> None:
        """Cancel the active run of a thread and wait until its end is stored."""
        threads, cancelled = self._cluster.store.threads, set[str]()
        while (record := await threads.get(key)) is not None and (run_id := record.active_run) is not None:
            if run_id not in cancelled:
                cancelled.add(run_id)
                with suppress(AppError):  # the run has ended meanwhile
                    await self._runs.cancel(caller, key.thread_id, run_id)
            await asyncio.sleep(POLL_SECONDS)

    async def _clean_up_agent(self, key: ThreadKey) -> None:
        """Delete the agent's data of a thread.

        This comes before the deletion from the store, because the caller can repeat a deletion that failed only as long
        as the store has the thread.
        """
        if self._thread_cleanup is None:
            return
        try:
            await self._thread_cleanup.forget_thread(key.owner, key.thread_id)
        except Exception:
            logger.exception("agent failed to delete the data of a thread %s", format_fields({"thread": key.thread_id}))
            raise AppError(
                ErrorCode.INTERNAL_ERROR, "The thread is not deleted: its agent failed to forget it."
            ) from None

    async def _fork(self, key: ThreadKey, command: ThreadsFork) -> View:
        threads = self._cluster.store.threads
        message = await threads.message(key, command.message_id)
        if message is None:
            raise message_not_found()
        turn = await turn_after_message(threads, key, message)
        new_id, now = command.new_thread_id or self._new_id(), self._cluster.clock.time()
        try:
            fork = await threads.fork(Fork(key, command.message_id, new_id, now, turn))
        except CannotFork as error:
            if error.id_exists:
                raise AppError(ErrorCode.VALIDATION_ERROR, "newThreadId: there is another thread of this id.") from None
            if error.active:
                raise AppError(ErrorCode.THREAD_BUSY, "messageId: this message is still being written.") from None
            raise message_not_found() from None
        await copy_entries(self._cluster.store, key, fork.key, message, now)
        return thread_view(fork)

    async def _feedback(self, key: ThreadKey, command: ThreadsFeedback) -> View:
        """Store the feedback on a message of the assistant."""
        message = await self._cluster.store.threads.message(key, command.message_id)
        if message is None:
            raise message_not_found()
        (role,) = [each.role for each in parse_messages([message])]
        if role != "assistant":
            raise AppError(ErrorCode.VALIDATION_ERROR, f"messageId: is a message of role {role}, not assistant.")
        now = self._cluster.clock.time()
        feedback = Feedback(command.message_id, command.sentiment, command.categories, command.notes, now, now)
        stored = await self._cluster.store.feedbacks.put(key, feedback)
        if stored is None:  # the thread was deleted meanwhile
            raise message_not_found()
        return {"threadId": key.thread_id, **feedback_view(stored)}


async def count_and_build(
    lease: QuotaLease, caller: Caller, size: int, build: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Count the bytes of what was read, and build a view of it. Raises ``AppError`` RATE_LIMIT_EXCEEDED."""
    lease.resize(size)
    return await offload_if_large(caller.identity, size, build, *args, **kwargs)


def thread_not_found() -> AppError:
    """Return the error for a thread that does not exist or belongs to another caller."""
    return AppError(ErrorCode.THREAD_NOT_FOUND, "There is no such thread.")


def message_not_found() -> AppError:
    """Return the error for a message that its thread does not have, or whose thread does not exist."""
    return AppError(ErrorCode.THREAD_NOT_FOUND, "There is no such thread, or no such message in it.")
