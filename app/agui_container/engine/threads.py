"""Commands on threads: list, get, delta, transcript, rename, fork, delete, feedback.

Rule: a caller can use the threads of its own scope only. Any other thread is THREAD_NOT_FOUND. Views are built field by
field (``views``), so internal fields of the store do not reach clients.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from ag_ui.core import Interrupt, Message
from msgspec.structs import replace
from pydantic_core import from_json, to_json

from agui_container.conversation.questions import JOURNAL
from agui_container.engine.files import Files
from agui_container.engine.finder import RunFinder
from agui_container.engine.stored_messages import messages_since, threads_with, turn_after_message
from agui_container.engine.views import (
    FEEDBACK,
    View,
    delta_view,
    feedback_view,
    interrupt_view,
    parse_messages,
    shown_thread_view,
    thread_view,
    transcript_view,
)
from agui_container.log_values import format_fields
from agui_container.ports import Caller, ThreadCleanup
from agui_container.ports.records import (
    Page,
    StoredMessage,
    ThreadDelta,
    ThreadKey,
    ThreadNote,
    ThreadRecord,
)
from agui_container.ports.store import BadToken, CannotFork, Delete, Fork, Rename, store_errors_as_app_errors
from agui_container.protocol.errors import AppError, ErrorCode, validation_error
from agui_container.run.cluster import Cluster
from agui_container.run.notes import (
    ENTRY,
    copy_entries,
    entries_after,
    entries_in,
    entries_view,
    questions_in,
    read_message,
)
from agui_container.threads import offload_if_large
from agui_core.commands import (
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

CANCEL_SECONDS = 2.0
"""Longest wait of a deletion for the end of the thread's active run."""

POLL_SECONDS = 0.1
"""Longest pause between two checks if all runs have ended."""


logger = logging.getLogger(__name__)


class ThreadCommands:
    def __init__(
        self,
        cluster: Cluster,
        new_id: Callable[[], str],
        runs: RunFinder,
        files: Files,
        thread_cleanup: ThreadCleanup | None = None,
    ) -> None:
        self._cluster = cluster
        self._new_id = new_id
        self._runs = runs
        self._files = files
        self._thread_cleanup = thread_cleanup

    async def answer(self, caller: Caller, command: ThreadCommand) -> View:
        """Execute a command on the caller's threads. Return the JSON object of the response.

        Raises:
            AppError: THREAD_NOT_FOUND, THREAD_BUSY, VALIDATION_ERROR, STORE_UNAVAILABLE.
        """
        with store_errors_as_app_errors():
            return await self._execute(caller, command)

    async def _execute(  # noqa: PLR0911 - a case for each command
        self, caller: Caller, command: ThreadCommand
    ) -> View:
        if isinstance(command, ThreadsList):
            return await self._list(caller.owner, command)
        key = ThreadKey(caller.owner, command.thread_id)
        match command:
            case ThreadsGet():
                return await self._get(key, command)
            case ThreadsDelta():
                delta = await self._changes(key, command.since)
                return await offload_if_large(delta.size, delta_view, delta)
            case ThreadsTranscript():
                delta = await self._changes(key, notes=(ENTRY,))
                text = await offload_if_large(delta.size, transcript_view, delta)
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
            return (await self._changes(ThreadKey(caller.owner, thread_id), messages=False)).thread

    async def waiting(self, caller: Caller, thread_id: str) -> Sequence[Interrupt]:
        """Return the interrupts of a thread that wait for an answer. Raises ``AppError`` STORE_UNAVAILABLE."""
        with store_errors_as_app_errors():
            return await self._runs.waiting(caller, thread_id)

    async def delta(
        self,
        caller: Caller,
        thread_id: str,
        since: str | None = None,
        *,
        messages: bool = True,
        notes: Sequence[str] = (),
    ) -> ThreadDelta:
        """Return a stored thread, for transports that have their own format of threads.

        ``since`` is the ``next`` of an earlier ``ThreadDelta``; the result then has only the changes after that one.
        Without ``messages`` the result has no messages. ``notes`` are kinds of notes that it has.

        Raises:
            AppError: THREAD_NOT_FOUND, STORE_UNAVAILABLE.
        """
        with store_errors_as_app_errors():
            return await self._changes(ThreadKey(caller.owner, thread_id), since, messages=messages, notes=notes)

    async def last_message(self, caller: Caller, thread_id: str) -> StoredMessage | None:
        with store_errors_as_app_errors():
            page = await self._cluster.store.messages(ThreadKey(caller.owner, thread_id), limit=1)
        return page.items[-1] if page and page.items else None

    async def messages_since(
        self, caller: Caller, thread_id: str, is_first: Callable[[Message], bool]
    ) -> Sequence[Message]:
        with store_errors_as_app_errors():
            return await messages_since(self._cluster.store, ThreadKey(caller.owner, thread_id), is_first)

    async def put_notes(self, caller: Caller, thread_id: str, notes: Sequence[ThreadNote]) -> None:
        """Store notes of a thread, of a kind of the transport's own. Raises as ``delta``."""
        with store_errors_as_app_errors():
            if not await self._cluster.store.put_notes(ThreadKey(caller.owner, thread_id), notes):
                raise thread_not_found()

    # --- reading ---

    async def _list(self, owner: str, command: ThreadsList) -> View:
        try:
            page = await self._cluster.store.threads(owner, limit=command.limit, page=command.page)
        except BadToken:
            raise validation_error("page: must be a 'next' of this list.") from None
        records = page.items
        if command.text is not None:
            records = await threads_with(self._cluster.store, records, command.text)
        threads: View = {"threads": [thread_view(record) for record in records]}
        return threads if page.next is None else {**threads, "next": page.next}

    async def _get(self, key: ThreadKey, command: ThreadsGet) -> View:
        with_messages = command.messages and not command.is_page
        delta = await self._changes(key, messages=with_messages, notes=(JOURNAL, ENTRY, FEEDBACK))
        page = await self._page(key, command) if command.messages and command.is_page else Page(delta.messages)
        delta = replace(delta, messages=page.items)
        waiting = [interrupt_view(it) for it in questions_in(delta.notes, self._cluster.clock.time())]
        entries = entries_in(delta.notes)
        if command.is_page:
            entries = entries_after(entries, {message.id for message in page.items}, is_first=page.next is None)
        build = partial(shown_thread_view, with_messages=command.messages)
        view = await offload_if_large(delta.size, build, delta)
        view |= {"waiting": waiting, **entries_view(entries, waiting)}
        return view if page.next is None else {**view, "before": page.next}

    async def _page(self, key: ThreadKey, command: ThreadsGet) -> Page[StoredMessage]:
        """Return a page of messages. It may be newer than the thread's ``continuationToken``, but never older."""
        limit = command.limit or MAX_PAGE
        try:
            page = await self._cluster.store.messages(key, limit=limit, before=command.before)
        except BadToken:
            message = "before: must be the id of a message of this thread."
            raise validation_error(message) from None
        if page is None:
            raise thread_not_found()
        return page

    async def _changes(
        self, key: ThreadKey, since: str | None = None, *, messages: bool = True, notes: Sequence[str] = ()
    ) -> ThreadDelta:
        delta = await self._cluster.store.thread(key, since, messages=messages, notes=notes)
        if delta is None:
            raise thread_not_found()
        return delta

    async def _message(self, key: ThreadKey, message_id: str) -> StoredMessage:
        message = await read_message(self._cluster.store, key, message_id)
        if message is None:
            raise message_not_found()
        return message

    # --- changing ---

    async def _rename(self, key: ThreadKey, title: str | None) -> View:
        """Set the title of a thread, which keeps its place in lists, because nothing was said in it."""
        record = await self._cluster.store.edit(key, Rename(title))
        if record is None:
            raise thread_not_found()
        return thread_view(record)

    async def _delete(self, caller: Caller, key: ThreadKey) -> View:
        """Cancel the open runs, so that their readers get a terminal event, and delete the thread."""
        with suppress(TimeoutError):  # a replica that misses the command loses the lease when the thread is deleted
            async with asyncio.timeout(CANCEL_SECONDS):
                while await self._runs.cancel_all(caller, key.thread_id):
                    await self._cluster.thread_ends.wait(key, POLL_SECONDS)
        await self._clean_up_agent(key)
        await self._files.forget_thread(key)
        if await self._cluster.store.edit(key, Delete()) is None:
            raise thread_not_found()
        self._runs.forget_thread(key)
        return {"threadId": key.thread_id, "deleted": True}

    async def _clean_up_agent(self, key: ThreadKey) -> None:
        """Delete the agent's data first: a failed deletion can be repeated only as long as the store has the thread."""
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
        store = self._cluster.store
        message = await self._message(key, command.message_id)
        questions = questions_in(await store.notes(key, JOURNAL), self._cluster.clock.time())
        turn = await turn_after_message(store, key, message, {question.tool_call_id for question in questions})
        new_id, now = command.new_thread_id or self._new_id(), self._cluster.clock.time()
        try:
            fork = await store.edit(key, Fork(command.message_id, new_id, now, turn))
        except CannotFork as error:
            if error.id_exists:
                raise validation_error("newThreadId: there is another thread of this id.") from None
            if error.active:
                raise AppError(ErrorCode.THREAD_BUSY, "messageId: this message is still being written.") from None
            raise message_not_found() from None
        if fork is None:
            raise thread_not_found()
        await copy_entries(store, key, fork.key, message)
        return thread_view(fork)

    async def _feedback(self, key: ThreadKey, command: ThreadsFeedback) -> View:
        message = await self._message(key, command.message_id)
        (role,) = [each.role for each in parse_messages([message])]
        if role != "assistant":
            raise validation_error(f"messageId: is a message of role {role}, not assistant.")
        store, now = self._cluster.store, self._cluster.clock.time()
        earlier = {note.id: from_json(note.data) for note in await store.notes(key, FEEDBACK)}.get(message.id)
        view = feedback_view(command, now if earlier is None else earlier["createdAt"], now)
        note = ThreadNote(FEEDBACK, message.id, to_json(view), message_id=message.id)
        if not await store.put_notes(key, [note]):  # the thread was deleted meanwhile
            raise message_not_found()
        return {"threadId": key.thread_id, **view}


def thread_not_found() -> AppError:
    return AppError(ErrorCode.THREAD_NOT_FOUND, "There is no such thread.")


def message_not_found() -> AppError:
    """Return the error for a message that its thread does not have, or whose thread does not exist."""
    return AppError(ErrorCode.THREAD_NOT_FOUND, "There is no such thread, or no such message in it.")
