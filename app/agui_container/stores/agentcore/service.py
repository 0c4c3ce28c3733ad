"""Asynchronous access to AgentCore Memory: read histories, write turns, delete threads.

Rule: calls run in threads and never block the event loop. Every call has a timeout. Every error becomes
``StoreUnavailable``.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import TypeVar

from agui_container.ports.records import StoredMessage, ThreadKey
from agui_container.ports.store import StoreUnavailable
from agui_container.runtime.daemon_threads import DaemonThreadPool
from agui_container.stores.agentcore.client import EventPage, MemoryClient, SessionPage, error_code
from agui_container.stores.agentcore.identifiers import session_id
from agui_container.stores.agentcore.turn_events import (
    Event,
    ThreadHistory,
    TurnRecord,
    fold_records,
    load_record,
    make_turn_parts,
    read_turn_records,
)

CALLS = 16
"""Maximum number of concurrent calls. Further calls wait."""

CALL_SECONDS = 10.0
"""Limit of one call, including its retries and the wait for a thread."""

MAX_READ = 64_000_000
"""Characters of records after which a thread is not read further. Older turns stay unread."""

MAX_SESSIONS = 1_000
"""Maximum number of an owner's threads in a list. Threads that are not in memory are read for the list."""

T = TypeVar("T")

logger = logging.getLogger(__name__)


class MemoryService:
    """One memory of the service.

    Args:
        memory_id: id or ARN of the memory.
        call_seconds: limit of one call, in seconds.
    """

    def __init__(self, memory_id: str, call_seconds: float = CALL_SECONDS) -> None:
        self._client = MemoryClient(memory_id, CALLS)
        self._threads = DaemonThreadPool(CALLS)
        self._slots = asyncio.Semaphore(CALLS)
        self._seconds = call_seconds

    async def history(self, owner: str, session: str) -> tuple[ThreadHistory | None, bool]:
        """Return the history of a session, and True if it is complete. Raises ``StoreUnavailable``."""
        events: list[Event] = []
        size = 0
        async for page in self._pages(owner, session, payloads=True):
            events += page.events
            size += sum(len(str(item.get("blob", ""))) for event in page.events for item in event.get("payload", ()))
            if size > MAX_READ and page.next:
                return _history(events, owner), False
        return _history(events, owner), True

    async def write(
        self, turn: str, thread: ThreadKey, at: float, messages: Sequence[StoredMessage], text: str
    ) -> None:
        """Write the events of a turn, one after the other.

        Raises:
            StoreUnavailable: The turn is incomplete; repeating the call completes it.
        """
        for part in make_turn_parts(turn, at, messages, text):
            await self._call(partial(self._client.create, thread, at, part))

    async def remove(self, thread: ThreadKey) -> bool:
        """Delete all events of a thread. Return True if there were any.

        Raises:
            StoreUnavailable: The deletion is incomplete; repeat the call.
        """
        pages = [page async for page in self._pages(thread.owner, session_id(thread.thread_id), payloads=False)]
        ids = [str(event["eventId"]) for page in pages for event in page.events]
        for name in ids:
            await self._call(partial(self._delete_event, thread, name))
        return bool(ids)

    async def sessions(self, owner: str) -> Sequence[str]:
        """Return the session ids of an owner, at most ``MAX_SESSIONS``. Raises ``StoreUnavailable``."""
        session_ids: list[str] = []
        token: str | None = None
        while len(session_ids) < MAX_SESSIONS:
            page = await self._call(partial(self._session_page, owner, token))
            session_ids += page.sessions
            token = page.next
            if not token:
                break
        return session_ids[:MAX_SESSIONS]

    def _session_page(self, owner: str, token: str | None) -> SessionPage:
        return _call_or_default(lambda: self._client.sessions(owner, token), SessionPage((), None))

    def close(self) -> None:
        """Close idle connections."""
        self._client.close()

    async def _pages(self, owner: str, session: str, *, payloads: bool) -> AsyncIterator[EventPage]:
        token: str | None = None
        while True:
            page = await self._call(partial(self._event_page, owner, session, token, payloads=payloads))
            yield page
            token = page.next
            if not token:
                return

    def _event_page(self, owner: str, session: str, token: str | None, *, payloads: bool) -> EventPage:
        return _call_or_default(
            lambda: self._client.events(owner, session, token, payloads=payloads), EventPage((), None)
        )

    def _delete_event(self, thread: ThreadKey, event_id: str) -> None:
        _call_or_default(lambda: self._client.delete(thread, event_id), None)

    async def _call(self, function: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(self._seconds):
                return await self._run_in_thread(function)
        except Exception as error:
            raise StoreUnavailable(f"AgentCore Memory: {type(error).__name__}: {error}") from error

    async def _run_in_thread(self, function: Callable[[], T]) -> T:
        """Run ``function`` in a thread and return its result.

        If the caller is cancelled, the thread continues and occupies its slot until it ends.
        """
        await self._slots.acquire()
        call = asyncio.ensure_future(self._threads.call("memory", function))
        call.add_done_callback(self._release_slot)
        await asyncio.wait([call])
        return call.result()

    def _release_slot(self, call: asyncio.Future[T]) -> None:
        self._slots.release()
        if not call.cancelled():
            call.exception()  # marks it as retrieved, because the caller may have been cancelled


def _history(events: Sequence[Event], owner: str) -> ThreadHistory | None:
    records: list[TurnRecord] = []
    for text in read_turn_records(events):
        try:
            records.append(load_record(text, owner))
        except ValueError:
            logger.warning("turn record unreadable, skipped")
    return fold_records(records)


def _call_or_default(function: Callable[[], T], default: T) -> T:
    """Return the result of ``function``, or ``default`` if the service does not know the resource."""
    try:
        return function()
    except Exception as error:
        if error_code(error) != "ResourceNotFoundException":
            raise
        return default
