"""What callers read of their threads and do with them: lists, titles, transcripts, forks, deltas, feedback.

Rule: a caller reaches the threads of its own scope only; any other is THREAD_NOT_FOUND, as if it were not there. What
goes out is built field by field here, so what a store keeps besides stays inside.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeVar

import anyio.to_thread
from ag_ui.core import Interrupt

from agui_container.engine.persistence.cluster import Cluster
from agui_container.engine.threads.views import (
    View,
    delta_view,
    feedback_view,
    interrupt_view,
    parse_messages,
    thread_view,
    transcript_view,
)
from agui_container.ports import Caller, ThreadCleanup
from agui_container.ports.records import Feedback, ThreadDelta, ThreadKey, ThreadStatus
from agui_container.ports.store import BadToken, CannotFork, store_errors_as_app_errors
from agui_container.protocol.commands import (
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
from agui_container.protocol.conversation.merge import unanswered_calls
from agui_container.protocol.errors import AppError, ErrorCode

OfThread = ThreadsDelta | ThreadsTranscript | ThreadsRename | ThreadsFork | ThreadsFeedback

CANCEL_SECONDS = 2.0
"""How long the deletion of a thread waits for the end of what runs on it."""

LOOK_SECONDS = 0.01
"""Between two looks at whether it has ended."""

LARGE_BYTES = 100_000
"""Messages above this are read in a thread."""

T = TypeVar("T")

logger = logging.getLogger(__name__)


class RunControl(Protocol):
    """What runs on threads, and has run."""

    async def cancel(self, caller: Caller, thread_id: str | None, run_id: str | None) -> object:
        """End a run. Raises ``AppError`` RUN_NOT_FOUND."""

    def forget_thread(self, thread: ThreadKey) -> None:
        """The thread has been deleted: nothing that has run on it can be read."""


class ThreadCommands:
    """The threads of one process's archive.

    Args:
        archive: where they are kept.
        new_id: makes the ids of forks.
        runs: what becomes of those of a thread that is deleted.
        waiting: what has been asked on a thread and is not answered.
        rememberer: the agent, if it keeps something of threads by itself.
    """

    def __init__(
        self,
        cluster: Cluster,
        new_id: Callable[[], str],
        runs: RunControl,
        waiting: Callable[[Caller, str], Awaitable[Sequence[Interrupt]]],
        rememberer: ThreadCleanup | None = None,
    ) -> None:
        self._cluster = cluster
        self._new_id = new_id
        self._runs = runs
        self._pending_interrupts = waiting
        self._rememberer = rememberer

    async def answer(self, caller: Caller, asked: ThreadCommand) -> View:
        """Do what is asked of the caller's threads.

        Raises:
            AppError: THREAD_NOT_FOUND, THREAD_BUSY, VALIDATION_ERROR, STORE_UNAVAILABLE.
        """
        with store_errors_as_app_errors():
            if isinstance(asked, ThreadsList):
                return await self._list(caller.owner, asked)
            if isinstance(asked, ThreadsGet):
                return await self._get(caller, asked)
            if isinstance(asked, ThreadsDelete):
                return await self._delete(caller, ThreadKey(caller.owner, asked.thread_id))
            return await self._do(ThreadKey(caller.owner, asked.thread_id), asked)

    async def delta(
        self, caller: Caller, thread_id: str, since: str | None = None, *, messages: bool = True
    ) -> ThreadDelta:
        """Return a thread as it is stored, for a transport that shows it in a form of its own.

        ``since`` is a ``Delta.next``: then it has only what changed after it. Without ``messages`` it has none of them.

        Raises:
            AppError: THREAD_NOT_FOUND, STORE_UNAVAILABLE.
        """
        with store_errors_as_app_errors():
            return await self._changes(ThreadKey(caller.owner, thread_id), since, messages=messages)

    async def annotate(self, caller: Caller, thread_id: str, notes: Mapping[str, object]) -> None:
        """Put JSON values into a thread's metadata by their names; None takes one away.

        Raises:
            AppError: THREAD_NOT_FOUND, STORE_UNAVAILABLE.
        """
        with store_errors_as_app_errors():
            if not await self._cluster.store.threads.annotate(ThreadKey(caller.owner, thread_id), notes):
                raise thread_not_found()

    async def _do(self, key: ThreadKey, asked: OfThread) -> View:
        result: View = {}
        match asked:
            case ThreadsDelta():
                result = await off_loop_if_large(delta_view, await self._changes(key, asked.since))
            case ThreadsTranscript():
                result = await self._transcript(key)
            case ThreadsRename():
                result = await self._rename(key, asked.title)
            case ThreadsFork():
                result = await self._fork(key, asked)
            case ThreadsFeedback():
                result = await self._feedback(key, asked)
        return result

    # --- reading ---

    async def _list(self, owner: str, asked: ThreadsList) -> View:
        try:
            page = await self._cluster.store.threads.list(owner, limit=asked.limit, page=asked.page)
        except BadToken:
            raise AppError(ErrorCode.VALIDATION_ERROR, "page: must be a 'next' of this list.") from None
        threads: View = {"threads": [thread_view(record) for record in page.items]}
        return threads if page.next is None else {**threads, "next": page.next}

    async def _get(self, caller: Caller, asked: ThreadsGet) -> View:
        key = ThreadKey(caller.owner, asked.thread_id)
        whole = await off_loop_if_large(delta_view, await self._changes(key, messages=asked.messages))
        for name in ("order",) if asked.messages else ("messages", "runs"):
            whole.pop(name, None)
        whole["feedback"] = [feedback_view(it) for it in await self._cluster.store.feedbacks.list_for(key)]
        whole["waiting"] = [interrupt_view(it) for it in await self._pending_interrupts(caller, asked.thread_id)]
        return whole

    async def _transcript(self, key: ThreadKey) -> View:
        return {
            "threadId": key.thread_id,
            "transcript": await off_loop_if_large(transcript_view, await self._changes(key)),
        }

    async def _changes(self, key: ThreadKey, since: str | None = None, *, messages: bool = True) -> ThreadDelta:
        delta = await self._cluster.store.threads.changes(key, since, messages=messages)
        if delta is None:
            raise thread_not_found()
        return delta

    # --- changing ---

    async def _rename(self, key: ThreadKey, title: str | None) -> View:
        threads = self._cluster.store.threads
        renamed = await threads.rename(key, title, self._cluster.clock.time())
        record = await threads.get(key) if renamed else None
        if record is None:
            raise thread_not_found()
        return thread_view(record)

    async def _delete(self, caller: Caller, key: ThreadKey) -> View:
        """Readers of a run that goes on see it cancelled, not cut off."""
        with suppress(TimeoutError):  # a replica that does not hear finds its run gone
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._cancel_run(caller, key)
        await self._forget(key)
        if not await self._cluster.store.threads.delete(key):
            raise thread_not_found()
        self._runs.forget_thread(key)
        return {"threadId": key.thread_id, "deleted": True}

    async def _cancel_run(self, caller: Caller, key: ThreadKey) -> None:
        """What runs on the thread is cancelled, and its end is stored."""
        threads, asked = self._cluster.store.threads, set[str]()
        while (record := await threads.get(key)) is not None and (run_id := record.active_run) is not None:
            if run_id not in asked:
                asked.add(run_id)
                with suppress(AppError):  # over by now
                    await self._runs.cancel(caller, key.thread_id, run_id)
            await asyncio.sleep(LOOK_SECONDS)

    async def _forget(self, key: ThreadKey) -> None:
        """The agent first: once the store has deleted the thread, nobody could ask for it again."""
        if self._rememberer is None:
            return
        try:
            await self._rememberer.forget_thread(key.owner, key.thread_id)
        except Exception:
            logger.exception("the agent cannot forget a thread")
            raise AppError(
                ErrorCode.INTERNAL_ERROR, "The thread is not deleted: its agent failed to forget it."
            ) from None

    async def _fork(self, key: ThreadKey, asked: ThreadsFork) -> View:
        turn = await off_loop_if_large(
            partial(turn_after_message, message_id=asked.message_id), await self._changes(key)
        )
        new_id, now = asked.new_thread_id or self._new_id(), self._cluster.clock.time()
        try:
            return thread_view(await self._cluster.store.threads.fork(key, asked.message_id, new_id, now, turn))
        except CannotFork as error:
            if error.taken:
                raise AppError(ErrorCode.VALIDATION_ERROR, "newThreadId: there is another thread of this id.") from None
            if error.active:
                raise AppError(ErrorCode.THREAD_BUSY, "messageId: this message is still being written.") from None
            raise thread_not_found("There is no such thread, or no such message in it.") from None

    async def _feedback(self, key: ThreadKey, asked: ThreadsFeedback) -> View:
        """Only what an assistant has said can be rated."""
        said = {message.id: message for message in (await self._changes(key)).messages}
        if asked.message_id not in said:
            raise thread_not_found("There is no such message in this thread.")
        (message,) = parse_messages([said[asked.message_id]])
        if message.role != "assistant":
            raise AppError(
                ErrorCode.VALIDATION_ERROR, f"messageId: is a message of role {message.role}, not assistant."
            )
        now = self._cluster.clock.time()
        feedback = Feedback(asked.message_id, asked.sentiment, asked.categories, asked.notes, now, now)
        given = await self._cluster.store.feedbacks.put(key, feedback)
        if given is None:  # deleted in between
            raise thread_not_found()
        return {"threadId": key.thread_id, **feedback_view(given)}


def thread_not_found(message: str = "There is no such thread.") -> AppError:
    """What a caller is told of a thread that is not there, or not its own."""
    return AppError(ErrorCode.THREAD_NOT_FOUND, message)


async def off_loop_if_large(work: Callable[[ThreadDelta], T], delta: ThreadDelta) -> T:
    """Do this to a thread, off the event loop where there is much of it: a megabyte takes tens of milliseconds."""
    if sum(len(message.data) for message in delta.messages) <= LARGE_BYTES:
        return work(delta)
    return await anyio.to_thread.run_sync(work, delta)


def turn_after_message(delta: ThreadDelta, message_id: str) -> ThreadStatus:
    """Whose turn it is behind this message of a thread.

    A call that has no result there is the client's, as far as messages tell. One that has none to this day waits for
    the client only if the thread does; else for an approval, or for nothing.
    """
    messages = parse_messages(delta.messages)
    end = next((at for at, message in enumerate(messages, 1) if message.id == message_id), 0)
    calls = set(unanswered_calls(messages[:end]))
    still_open = not calls.isdisjoint(unanswered_calls(messages))
    if not calls or (still_open and delta.thread.status is not ThreadStatus.CLIENT_TOOL_TURN):
        return ThreadStatus.USER_TURN
    return ThreadStatus.CLIENT_TOOL_TURN
