"""Synchronization of threads between this process and AgentCore Memory.

Rule: each write sends the thread's changes since the last successful write. A failed write therefore needs no queue:
the next write includes its content. A lock per thread serializes reads and writes.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from agui_container.log_values import format_fields
from agui_container.ports.records import StoreWarning, ThreadDelta, ThreadKey, ThreadRecord, ThreadStatus
from agui_container.ports.store import Delete, StoreUnavailable
from agui_container.stores.agentcore.service import MemoryService, session_id
from agui_container.stores.agentcore.turn_events import ThreadHistory, merge_turns
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
        last_turn_at: end of the last turn, in Unix seconds.
        warnings: warnings that were not returned yet, by name.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_loaded: bool = False
    is_complete: bool = False
    written_token: str | None = None
    written_facts: ThreadFacts | None = None
    last_turn_at: float = 0.0
    warnings: dict[str, StoreWarning] = field(default_factory=dict)

    def add_warning(self, warning: StoreWarning) -> None:
        self.warnings[warning.name] = warning

    def has_changes(self, delta: ThreadDelta) -> bool:
        if delta.messages or delta.notes or self.written_token is None:
            return bool(delta.messages or delta.notes)
        return bool(delta.state) or delta.order is not None or facts_of(delta.thread) != self.written_facts

    def set_written(self, delta: ThreadDelta) -> None:
        self.written_token, self.written_facts = delta.next, facts_of(delta.thread)


class ThreadHistories:
    """Messages of threads, in memory and in the service."""

    def __init__(self, memory: MemoryStore, service: MemoryService) -> None:
        self._memory = memory
        self._service = service
        self._threads: OrderedDict[ThreadKey, ThreadSync] = OrderedDict()
        self._list_reads = asyncio.Semaphore(LIST_READS)

    # --- reading ---

    async def load_if_absent(self, key: ThreadKey) -> None:
        """Read a thread that is not in memory. Raises ``StoreUnavailable``."""
        if not self._memory.has(key):
            await self.load(key)
            if not self._memory.has(key):
                self._threads.pop(key, None)  # the thread does not exist

    async def load(self, key: ThreadKey) -> None:
        """Read a thread, unless it was read and is still in memory. Raises ``StoreUnavailable``."""
        sync = self._sync_of(key)
        if sync.is_loaded and self._memory.has(key):
            return
        async with sync.lock:
            if not sync.is_loaded or not self._memory.has(key):
                self._restore(key, sync, await self._service.read(key.owner, session_id(key.thread_id)))

    async def load_for_run(self, key: ThreadKey) -> None:
        """Read a thread for a run. A failure is reported as a warning, and the run starts without the history."""
        try:
            await self.load(key)
        except StoreUnavailable as error:
            logger.warning("thread history not read %s", format_fields({"thread": key.thread_id, "error": error}))
            self._sync_of(key).add_warning(UNREAD)

    async def load_missing(self, owner: str) -> None:
        """Read the threads of an owner that are not in memory, for a list. Raises ``StoreUnavailable``."""
        keys = [key for key in self._threads if key.owner == owner and self._memory.has(key)]
        in_memory = {session_id(key.thread_id) for key in keys}
        missing = [session for session in await self._service.sessions(owner) if session not in in_memory]
        try:
            async with asyncio.TaskGroup() as group:
                for session in missing:
                    group.create_task(self._load_for_list(owner, session))
        except ExceptionGroup as errors:
            raise StoreUnavailable(f"not all threads could be read: {errors.exceptions[0]}") from errors

    async def _load_for_list(self, owner: str, session: str) -> None:
        """Read a thread for a list. Another process may continue it, so its next run here reads it again."""
        async with self._list_reads:
            history = await self._service.read(owner, session)
        if not history.turns:
            return
        key = history.turns[-1].thread.key
        sync = self._sync_of(key)
        async with sync.lock:
            if not self._memory.has(key):
                self._restore(key, sync, history)
                sync.is_loaded = False

    def _restore(self, key: ThreadKey, sync: ThreadSync, history: ThreadHistory) -> None:
        """Merge a thread that was read into memory. Changes in memory that are not written yet have precedence.

        A message that was written before and is missing in a complete history was deleted by another process.
        """
        if not self._memory.has(key):
            sync.written_token = None
        unwritten = self._memory.changes(key, sync.written_token)
        newer = unwritten if history.is_complete else self._memory.changes(key)
        if newer is not None and not sync.is_complete:
            newer = replace(newer, order=None)
        sync.is_loaded, sync.is_complete = True, history.is_complete
        if not history.is_complete:
            sync.add_warning(UNREAD)
        if not history.turns:
            return
        last = history.turns[-1].thread
        sync.last_turn_at = max(sync.last_turn_at, last.changed_at)
        self._memory.restore(merge_turns(history.turns if newer is None else [*history.turns, newer]))
        restored = self._memory.changes(key)
        if restored is not None and not (unwritten and (unwritten.messages or unwritten.notes or unwritten.state)):
            sync.set_written(replace(restored, thread=last))

    # --- writing ---

    async def write_turn(self, key: ThreadKey, *, conversational: bool = True) -> None:
        """Write the changes of a thread as one turn. If that fails, the next call writes them. See ``write``."""
        try:
            await self.write(key, conversational=conversational)
        except StoreUnavailable as error:
            logger.warning("thread turn not written %s", format_fields({"thread": key.thread_id, "error": error}))
            self._sync_of(key).add_warning(UNWRITTEN)

    async def write(self, key: ThreadKey, *, conversational: bool = True) -> None:
        """Write the changes of a thread as one turn. Raises ``StoreUnavailable``; then the next call writes them.

        Memory strategies get new messages that are ``conversational``. The copies in a fork are not.
        """
        sync = self._sync_of(key)
        async with sync.lock:
            delta = self._memory.changes(key, sync.written_token)
            if delta is None or not sync.has_changes(delta):
                return
            at = max(delta.thread.changed_at, sync.last_turn_at + TICK)
            turn = replace(
                delta, thread=replace(delta.thread, changed_at=at), order=delta.order if sync.is_complete else None
            )
            await self._service.write(key, turn, conversational=conversational)
            sync.set_written(delta)
            sync.last_turn_at = at
            sync.warnings.pop(UNWRITTEN.name, None)

    async def remove(self, key: ThreadKey) -> ThreadRecord | None:
        """Delete a thread in memory and in the service. Raises ``StoreUnavailable``; a repeated call completes it."""
        async with self._sync_of(key).lock:
            await self._service.remove(key)
            record = await self._memory.edit(key, Delete())
        self._threads.pop(key, None)
        return record

    # --- state ---

    def warnings(self, key: ThreadKey) -> Sequence[StoreWarning]:
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
