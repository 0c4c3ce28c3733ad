"""Synchronization of threads between this process and AgentCore Memory.

Rule: each write sends the thread's ``changes`` since the last successful write. A failed write therefore needs no
queue: the next write includes its content. A lock per thread serializes reads and writes.
"""

import asyncio
import json
import logging
import math
from collections import OrderedDict
from collections.abc import Sequence

from msgspec import Struct, field

from agui_container.ports.records import (
    Change,
    InterruptScope,
    StoredMessage,
    StoreWarning,
    ThreadDelta,
    ThreadKey,
    ThreadRecord,
    ThreadStatus,
)
from agui_container.ports.store import StoreUnavailable
from agui_container.runtime.log_values import format_fields
from agui_container.runtime.memory_interrupts import MemoryInterrupts
from agui_container.stores.agentcore.interrupt_events import StoredInterrupt
from agui_container.stores.agentcore.service import MemoryService, SessionContents, digest, session_id
from agui_container.stores.agentcore.turn_events import EARLIER, TurnRecord, dump_record
from agui_container.stores.memory.threads import MemoryThreads

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

ThreadFacts = tuple[str | None, ThreadStatus, bytes | None]
"""Title, status and metadata of a thread."""

logger = logging.getLogger(__name__)


class ThreadSync(Struct, eq=False):
    """State of a thread's synchronization with the service.

    Attributes:
        is_loaded: True if the thread was read from the service and need not be read again.
        is_complete: True if all messages of the thread are in memory, so that their order is known.
        written_token: token of the revision that was written last.
        written_facts: title, status and metadata that were written last.
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
        """Add a warning, which the next ``warnings`` call returns."""
        self.warnings[warning.name] = warning


class ThreadHistories:
    """Messages of threads, in memory and in the service.

    Args:
        memory: threads in memory.
        interrupts: interrupts in memory.
        service: AgentCore Memory.
    """

    def __init__(self, memory: MemoryThreads, interrupts: MemoryInterrupts, service: MemoryService) -> None:
        self._memory = memory
        self._interrupts = interrupts
        self._service = service
        self._threads: OrderedDict[ThreadKey, ThreadSync] = OrderedDict()
        self._list_reads = asyncio.Semaphore(LIST_READS)

    # --- reading ---

    async def load_if_absent(self, key: ThreadKey) -> None:
        """Read a thread that is not in memory. Raises ``StoreUnavailable``."""
        if await self._memory.get(key) is None:
            await self.load(key)
            if await self._memory.get(key) is None:
                self._threads.pop(key, None)  # the thread does not exist

    async def load(self, key: ThreadKey) -> None:
        """Read a thread, unless it was read and is still in memory. Raises ``StoreUnavailable``."""
        sync = self._sync_of(key)
        if sync.is_loaded and await self._memory.get(key) is not None:
            return
        async with sync.lock:
            if not sync.is_loaded or await self._memory.get(key) is None:
                contents = await self._service.read(key.owner, session_id(key.thread_id))
                await self._restore(key, sync, contents)

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
        in_memory = {session_id(key.thread_id) for key in keys if await self._memory.get(key) is not None}
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
                contents = await self._service.read(owner, session)
            except StoreUnavailable as error:
                logger.warning("thread not read for list %s", format_fields({"session": session, "error": error}))
                return False
        if contents.history is not None:
            key = contents.history.thread.key
            sync = self._sync_of(key)
            async with sync.lock:
                if await self._memory.get(key) is None:
                    await self._restore(key, sync, contents)
                    sync.is_loaded = False
        return True

    async def _restore(self, key: ThreadKey, sync: ThreadSync, contents: SessionContents) -> None:
        """Merge a session that was read into memory. Changes in memory that are not written yet have precedence."""
        history, complete = contents.history, contents.is_complete
        await self._restore_interrupts(key, contents.interrupts)
        if await self._memory.get(key) is None:
            sync.written_token, sync.written_facts = None, None
        in_memory, new = await self._memory.changes(key), await self._memory.changes(key, sync.written_token)
        sync.is_loaded, sync.is_complete = True, complete
        if not complete:
            sync.add_warning(UNREAD)
        if history is None:
            return
        sync.last_turn_at = max(sync.last_turn_at, history.thread.changed_at)
        unwritten = _unwritten_change(history.change, new)
        remaining = unwritten.messages if complete or in_memory is None else in_memory.messages
        self._memory.restore(history.thread, _merge_changes(history.change, remaining, unwritten))
        restored = await self._memory.changes(key)
        if restored is not None and not unwritten.messages and unwritten.state is None:
            sync.written_token, sync.written_facts = restored.next, _thread_facts(history.thread)

    async def _restore_interrupts(self, key: ThreadKey, stored: Sequence[StoredInterrupt]) -> None:
        for each in stored:
            scope = InterruptScope(each.depth, key.owner, key.thread_id, each.part)
            known = {interrupt.id for interrupt in await self._interrupts.list_open(scope, -math.inf)}
            if each.interrupt.id not in known:
                await self._interrupts.put(scope, [each.interrupt])

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
            delta = await self._memory.changes(key, sync.written_token)
            if delta is None or not _has_changes(delta, sync):
                return
            at = max(at, sync.last_turn_at + TICK)
            try:
                await self._write(
                    key, run_id, TurnRecord.of(delta, at, complete=sync.is_complete), conversational=conversational
                )
            except StoreUnavailable as error:
                logger.warning("thread turn not written %s", format_fields({"thread": key.thread_id, "error": error}))
                sync.add_warning(UNWRITTEN)
                return
            sync.written_token, sync.written_facts, sync.last_turn_at = delta.next, _thread_facts(delta.thread), at
            sync.warnings.pop(UNWRITTEN.name, None)

    async def remove(self, key: ThreadKey) -> bool:
        """Delete a thread in memory and in the service. Return True if it existed.

        Raises:
            StoreUnavailable: The deletion is incomplete; repeat the call.
        """
        sync = self._sync_of(key)
        async with sync.lock:
            was_in_memory = await self._memory.delete(key)
            was_in_service = await self._service.remove(key)
        self._threads.pop(key, None)
        return was_in_memory or was_in_service

    def warn(self, key: ThreadKey, warning: StoreWarning) -> None:
        """Report a warning about a thread with its next run."""
        self._sync_of(key).add_warning(warning)

    async def _write(self, key: ThreadKey, run_id: str | None, record: TurnRecord, *, conversational: bool) -> None:
        text, at = dump_record(record), record.thread.changed_at
        turn = digest(json.dumps([key.owner, key.thread_id, run_id, at, text]))
        new = [message for message in record.messages if conversational and message.run_id != EARLIER]
        await self._service.write(turn, key, at, new, text)

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


def _thread_facts(thread: ThreadRecord) -> ThreadFacts:
    return thread.title, thread.status, thread.metadata


def _has_changes(delta: ThreadDelta, sync: ThreadSync) -> bool:
    if sync.written_token is None:
        return bool(delta.messages)
    return bool(
        delta.messages or delta.state or delta.order is not None or _thread_facts(delta.thread) != sync.written_facts
    )


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
