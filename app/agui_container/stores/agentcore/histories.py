"""Synchronization of threads between this process and AgentCore Memory.

Rule: each write sends the thread's ``changes`` since the last successful write. A failed write therefore needs no
queue: the next write includes its content. A lock per thread serializes reads and writes.
"""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from agui_container.log_values import format_fields
from agui_container.ports.records import (
    Change,
    StoredMessage,
    StoreWarning,
    ThreadDelta,
    ThreadKey,
    ThreadNote,
    ThreadRecord,
    ThreadStatus,
)
from agui_container.ports.store import Delete, StoreUnavailable
from agui_container.stores.agentcore.service import MemoryService, digest, session_id
from agui_container.stores.agentcore.turn_events import EARLIER, ThreadHistory, TurnRecord, dump_record
from agui_container.stores.memory import MemoryStore

MAX_THREADS = 10_000
"""Maximum number of threads whose written revision is known. Any other thread is written again in full."""

LIST_READS = 4
"""Threads that are read at the same time for a list."""

TICK = 1e-6
"""Minimum difference in seconds between two turns of a thread, because turns are sorted by time when they are read."""

UNREAD = StoreWarning("history.unread", "Earlier messages of this conversation could not be read, or not all of them.")
UNWRITTEN = StoreWarning(
    "history.unwritten", "The last turn could not be stored yet. It will be stored with the next one."
)

ThreadFacts = tuple[str | None, ThreadStatus]
"""Title and status of a thread."""

logger = logging.getLogger(__name__)


class ThreadSync(Struct, eq=False):
    """State of a thread's synchronization with the service.

    Attributes:
        is_loaded: True if the thread was read from the service and need not be read again.
        is_complete: True if all messages of the thread are in memory, so that their order is known.
        written_token: token of the revision that was written last.
        written_facts: title and status that were written last.
        unwritten_notes: notes that were not written yet, by kind and id.
        last_turn_at: end of the last turn, in Unix seconds.
        warnings: warnings that were not returned yet, by name.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_loaded: bool = False
    is_complete: bool = False
    written_token: str | None = None
    written_facts: ThreadFacts | None = None
    unwritten_notes: dict[tuple[str, str], ThreadNote] = field(default_factory=dict)
    last_turn_at: float = 0.0
    warnings: dict[str, StoreWarning] = field(default_factory=dict)

    def add_warning(self, warning: StoreWarning) -> None:
        self.warnings[warning.name] = warning

    def defer(self, notes: Sequence[ThreadNote]) -> None:
        """Write notes with the next turn."""
        self.unwritten_notes |= {(note.kind, note.id): note for note in notes}

    def has_changes(self, delta: ThreadDelta) -> bool:
        if self.unwritten_notes or self.written_token is None:
            return bool(self.unwritten_notes or delta.messages)
        has_news = delta.messages or delta.state or delta.order is not None
        return bool(has_news) or facts_of(delta.thread) != self.written_facts


class ThreadHistories:
    """Messages of threads, in memory and in the service.

    Args:
        memory: the store in memory.
        service: AgentCore Memory.
    """

    def __init__(self, memory: MemoryStore, service: MemoryService) -> None:
        self._memory = memory
        self._service = service
        self._threads: OrderedDict[ThreadKey, ThreadSync] = OrderedDict()
        self._list_reads = asyncio.Semaphore(LIST_READS)

    # --- reading ---

    async def load_if_absent(self, key: ThreadKey) -> None:
        """Read a thread that is not in memory. Raises ``StoreUnavailable``."""
        if not await self._is_in_memory(key):
            await self.load(key)
            if not await self._is_in_memory(key):
                self._threads.pop(key, None)  # the thread does not exist

    async def load(self, key: ThreadKey) -> None:
        """Read a thread, unless it was read and is still in memory. Raises ``StoreUnavailable``."""
        sync = self._sync_of(key)
        if sync.is_loaded and await self._is_in_memory(key):
            return
        async with sync.lock:
            if not sync.is_loaded or not await self._is_in_memory(key):
                history = await self._service.read(key.owner, session_id(key.thread_id))
                await self._restore(key, sync, history)

    async def load_for_run(self, key: ThreadKey) -> None:
        """Read a thread for a run. A failure is reported as a warning, and the run starts without the history."""
        try:
            await self.load(key)
        except StoreUnavailable as error:
            logger.warning("thread history not read %s", format_fields({"thread": key.thread_id, "error": error}))
            self._sync_of(key).add_warning(UNREAD)

    async def load_missing(self, owner: str) -> None:
        """Read the threads of an owner that are not in memory, for a list. Raises ``StoreUnavailable``."""
        keys = [key for key in self._threads if key.owner == owner]
        in_memory = {session_id(key.thread_id) for key in keys if await self._is_in_memory(key)}
        missing = [session for session in await self._service.sessions(owner) if session not in in_memory]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._load_for_list(owner, session)) for session in missing]
        if not all(task.result() for task in tasks):
            raise StoreUnavailable("AgentCore Memory: not all threads could be read")

    async def _load_for_list(self, owner: str, session: str) -> bool:
        """Read a thread for a list. Return False if that failed.

        Another process may continue the thread, so its next run here reads it again.
        """
        async with self._list_reads:
            try:
                history = await self._service.read(owner, session)
            except StoreUnavailable as error:
                logger.warning("thread not read for list %s", format_fields({"session": session, "error": error}))
                return False
        if history is not None:
            key = history.thread.key
            sync = self._sync_of(key)
            async with sync.lock:
                if not await self._is_in_memory(key):
                    await self._restore(key, sync, history)
                    sync.is_loaded = False
        return True

    async def _is_in_memory(self, key: ThreadKey) -> bool:
        return await self._memory.thread(key, messages=False) is not None

    async def _restore(self, key: ThreadKey, sync: ThreadSync, history: ThreadHistory | None) -> None:
        """Merge a thread that was read into memory. Changes in memory that are not written yet have precedence."""
        complete = history is None or history.is_complete
        if not await self._is_in_memory(key):
            sync.written_token, sync.written_facts = None, None
        in_memory, new = await self._memory.thread(key), await self._memory.thread(key, sync.written_token)
        sync.is_loaded, sync.is_complete = True, complete
        if not complete:
            sync.add_warning(UNREAD)
        if history is None:
            return
        sync.last_turn_at = max(sync.last_turn_at, history.thread.changed_at)
        unwritten = _unwritten_change(history.change, new)
        remaining = unwritten.messages if complete or in_memory is None else in_memory.messages
        change = _merge_changes(history.change, remaining, unwritten)
        notes = [note for note in history.change.notes if (note.kind, note.id) not in sync.unwritten_notes]
        self._memory.restore(history.thread, replace(change, notes=notes))
        restored = await self._memory.thread(key)
        if restored is not None and not unwritten.messages and unwritten.state is None:
            sync.written_token, sync.written_facts = restored.next, facts_of(history.thread)

    # --- writing ---

    async def write_turn(self, key: ThreadKey, at: float, run_id: str | None = None, *, conversational: bool) -> None:
        """Write the changes of a thread as one turn. If that fails, the next call writes them.

        Args:
            key: the thread.
            at: time of the turn, in Unix seconds. Repeating a call with the same time and changes writes once.
            run_id: run that made the changes, if any.
            conversational: True if the new messages belong to this thread's own conversation, so that memory strategies
                get them. False for the copies in a fork and for metadata.
        """
        sync = self._sync_of(key)
        async with sync.lock:
            try:
                await self._write_changes(key, sync, at, run_id, conversational=conversational)
            except StoreUnavailable as error:
                logger.warning("thread turn not written %s", format_fields({"thread": key.thread_id, "error": error}))
                sync.add_warning(UNWRITTEN)

    async def write_notes(self, key: ThreadKey, notes: Sequence[ThreadNote]) -> None:
        """Write notes. Raises ``StoreUnavailable``; the next write includes them."""
        sync = self._sync_of(key)
        sync.defer(notes)
        async with sync.lock:
            await self._write_changes(key, sync, sync.last_turn_at, conversational=True)

    async def _write_changes(
        self, key: ThreadKey, sync: ThreadSync, at: float, run_id: str | None = None, *, conversational: bool
    ) -> None:
        delta = await self._memory.thread(key, sync.written_token)
        if delta is None or not sync.has_changes(delta):
            return
        at, notes = max(at, sync.last_turn_at + TICK), dict(sync.unwritten_notes)
        thread, order = replace(delta.thread, changed_at=at), delta.order if sync.is_complete else None
        text = dump_record(TurnRecord(thread, delta.messages, order, delta.state, list(notes.values())))
        turn = digest(json.dumps([key.owner, key.thread_id, run_id, at, text]))
        new = [message for message in delta.messages if conversational and message.run_id != EARLIER]
        await self._service.write(turn, key, at, new, text)
        sync.written_token, sync.written_facts, sync.last_turn_at = delta.next, facts_of(delta.thread), at
        for name, note in notes.items():
            if sync.unwritten_notes.get(name) is note:
                del sync.unwritten_notes[name]
        sync.warnings.pop(UNWRITTEN.name, None)

    async def remove(self, key: ThreadKey) -> ThreadRecord | None:
        """Delete a thread in memory and in the service. Return its record, or None if there was no such thread.

        Raises:
            StoreUnavailable: The deletion is incomplete; repeat the call.
        """
        async with self._sync_of(key).lock:
            await self._service.remove(key)
            record = await self._memory.edit(key, Delete())
        self._threads.pop(key, None)
        return record

    def defer_notes(self, key: ThreadKey, notes: Sequence[ThreadNote]) -> None:
        """Write notes with the next turn."""
        self._sync_of(key).defer(notes)

    # --- state ---

    def warnings(self, key: ThreadKey) -> Sequence[StoreWarning]:
        """Return the warnings of a thread since the last call."""
        sync = self._threads.get(key)
        if sync is None:
            return ()
        warnings, sync.warnings = list(sync.warnings.values()), {}
        return warnings

    def _sync_of(self, key: ThreadKey) -> ThreadSync:
        sync = self._threads.setdefault(key, ThreadSync())
        self._threads.move_to_end(key)
        while len(self._threads) > MAX_THREADS:
            self._threads.popitem(last=False)
        return sync


def facts_of(thread: ThreadRecord) -> ThreadFacts:
    return thread.title, thread.status


def _unwritten_change(history: Change, new: ThreadDelta | None) -> Change:
    """Return the changes in memory that the history from the service does not contain."""
    if new is None:
        return Change()
    written = {message.id: message.data for message in history.messages}
    messages = [message for message in new.messages if written.get(message.id) != message.data]
    return Change(messages, state=new.state if new.state != history.state else None)


def _merge_changes(history: Change, remaining: Sequence[StoredMessage], unwritten: Change) -> Change:
    """Return the change that merges the history from the service into memory.

    Messages of ``remaining`` remain and are sorted after the history. A message that was written before and is missing
    in a complete history was deleted by another process, so it is not in ``remaining``.
    """
    order = dict.fromkeys([*(history.order or ()), *(message.id for message in remaining)])
    newer = {message.id for message in unwritten.messages}
    messages = [message for message in history.messages if message.id not in newer]
    return Change(messages, list(order), history.state if unwritten.state is None else None, history.title)
