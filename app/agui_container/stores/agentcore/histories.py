"""Synchronization of threads between this process and AgentCore Memory.

Rule: each write sends the thread's ``changes`` since the last successful write. A failed write therefore needs no queue:
the next write includes its content. A lock per thread serializes reads and writes.
"""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Sequence

from msgspec import Struct, field

from agui_container.ports.records import (
    Change,
    StoredMessage,
    StoreWarning,
    ThreadDelta,
    ThreadKey,
    ThreadRecord,
    ThreadStatus,
)
from agui_container.ports.store import StoreUnavailable
from agui_container.stores.agentcore.identifiers import digest, session_id
from agui_container.stores.agentcore.service import MemoryService
from agui_container.stores.agentcore.turn_events import EARLIER, ThreadHistory, TurnRecord, dump_record
from agui_container.stores.memory.threads import MemoryThreads

MAX_KNOWN = 10_000
"""Maximum number of threads whose written revision is known. Any other thread is written again in full."""

LIST_READS = 4
"""Threads that are read at the same time for a list."""

TICK = 1e-6
"""Minimum difference in seconds between two turns of a thread, because turns are sorted by time when they are read."""

UNREAD = StoreWarning("history.unread", "Earlier messages of this conversation could not be read, or not all of them.")
UNWRITTEN = StoreWarning(
    "history.unwritten", "The last turn could not be stored yet. It will be stored with the next one."
)

Facts = tuple[str | None, ThreadStatus, bytes | None]
"""Title, status and metadata of a thread."""

logger = logging.getLogger(__name__)


class KnownThread(Struct, eq=False):
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
    read: bool = False
    whole: bool = False
    token: str | None = None
    facts: Facts | None = None
    at: float = 0.0
    warnings: dict[str, StoreWarning] = field(default_factory=dict)

    def add_warning(self, warning: StoreWarning) -> None:
        """Add a warning, which the next ``warnings`` call returns."""
        self.warnings[warning.name] = warning


class ThreadHistories:
    """Messages of threads, in memory and in the service.

    Args:
        memory: threads in memory.
        service: AgentCore Memory.
    """

    def __init__(self, here: MemoryThreads, service: MemoryService) -> None:
        self._here = here
        self._service = service
        self._known: OrderedDict[ThreadKey, KnownThread] = OrderedDict()
        self._finders = asyncio.Semaphore(FINDERS)

    # --- reading ---

    async def load_if_absent(self, key: ThreadKey) -> None:
        """Read a thread that is not in memory. Raises ``StoreUnavailable``."""
        if await self._here.get(key) is None:
            await self.read(key)
            if await self._here.get(key) is None:
                self._known.pop(key, None)  # the thread does not exist

    async def read(self, key: ThreadKey) -> None:
        """Read a thread, unless it was read and is still in memory. Raises ``StoreUnavailable``."""
        known = self._of(key)
        if known.read and await self._here.get(key) is not None:
            return
        async with known.lock:
            if not known.read or await self._here.get(key) is None:
                history, whole = await self._service.history(key.owner, session_id(key.thread_id))
                await self._restore(key, known, history, whole=whole)

    async def begin(self, key: ThreadKey) -> None:
        """Read a thread for a run. A failure is reported as a warning, and the run starts without the history."""
        try:
            await self.read(key)
        except StoreUnavailable as error:
            logger.warning("thread history not read thread=%s error=%s", key.thread_id, error)
            self._of(key).add_warning(UNREAD)

    async def find(self, owner: str) -> None:
        """Read the threads of an owner that are not in memory, for a list. Raises ``StoreUnavailable``."""
        keys = [key for key in self._known if key.owner == owner]
        here = {session_id(key.thread_id) for key in keys if await self._here.get(key) is not None}
        missing = [session for session in await self._service.sessions(owner) if session not in here]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._find(owner, session)) for session in missing]
        if not all(task.result() for task in tasks):
            raise StoreUnavailable("AgentCore Memory: not all threads could be read")

    async def _find(self, owner: str, session: str) -> bool:
        """Read a thread for a list. Return False if that failed.

        Another process may continue the thread, so its next run here reads it again.
        """
        async with self._finders:
            try:
                history, whole = await self._service.history(owner, session)
            except StoreUnavailable as error:
                logger.warning("thread not read for list session=%s error=%s", session, error)
                return False
        if history is not None:
            known = self._of(history.thread.key)
            async with known.lock:
                if await self._here.get(history.thread.key) is None:
                    await self._restore(history.thread.key, known, history, whole=whole)
                    known.read = False
        return True

    async def _restore(self, key: ThreadKey, known: KnownThread, history: ThreadHistory | None, *, whole: bool) -> None:
        """Merge the history that was read into memory. Changes in memory that are not written yet have precedence."""
        if await self._here.get(key) is None:
            known.token, known.facts = None, None
        here, new = await self._here.changes(key), await self._here.changes(key, known.token)
        known.read, known.whole = True, whole
        if not whole:
            known.add_warning(UNREAD)
        if history is None:
            return
        known.at = max(known.at, history.thread.changed_at)
        unwritten = _unwritten(history.change, new)
        stay = unwritten.messages if whole or here is None else here.messages
        self._here.restore(history.thread, _joined(history.change, stay, unwritten))
        restored = await self._here.changes(key)
        if restored is not None and not unwritten.messages and unwritten.state is None:
            known.token, known.facts = restored.next, _facts(history.thread)

    # --- writing ---

    async def keep(self, key: ThreadKey, at: float, run_id: str | None = None, *, spoken: bool) -> None:
        """Write the changes of a thread as one turn. If that fails, the next call writes them.

        Args:
            key: the thread.
            at: time of the turn, in Unix seconds. Repeating a call with the same time and changes writes once.
            run_id: run that made the changes, if any.
            spoken: True if the new messages belong to this thread's own conversation, so that memory strategies get
                them. False for a fork's copies.
        """
        known = self._of(key)
        async with known.lock:
            delta = await self._here.changes(key, known.token)
            if delta is None or not _is_new(delta, known):
                return
            at = max(at, known.at + TICK)
            try:
                await self._write(key, run_id, TurnRecord.of(delta, at, whole=known.whole), spoken=spoken)
            except StoreUnavailable as error:
                logger.warning("thread turn not written thread=%s error=%s", key.thread_id, error)
                known.add_warning(UNWRITTEN)
                return
            known.token, known.facts, known.at = delta.next, _facts(delta.thread), at
            known.warnings.pop(UNWRITTEN.name, None)

    async def remove(self, key: ThreadKey) -> bool:
        """Delete a thread in memory and in the service. Return True if it existed.

        Raises:
            StoreUnavailable: The deletion is incomplete; repeat the call.
        """
        known = self._of(key)
        async with known.lock:
            was_here = await self._here.delete(key)
            was_there = await self._service.remove(key)
        self._known.pop(key, None)
        return was_here or was_there

    async def _write(self, key: ThreadKey, run_id: str | None, record: TurnRecord, *, spoken: bool) -> None:
        text, at = dump_record(record), record.thread.changed_at
        turn = digest(json.dumps([key.owner, key.thread_id, run_id, at, text]))
        new = [message for message in record.messages if spoken and message.run_id != EARLIER]
        await self._service.write(turn, key, at, new, text)

    # --- state ---

    def warnings(self, key: ThreadKey) -> Sequence[StoreWarning]:
        """Return the warnings of a thread since the last call."""
        known = self._known.get(key)
        if known is None:
            return ()
        warnings, known.warnings = list(known.warnings.values()), {}
        return warnings

    def _of(self, key: ThreadKey) -> KnownThread:
        known = self._known.setdefault(key, KnownThread())
        self._known.move_to_end(key)
        while len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        return known


def _facts(thread: ThreadRecord) -> Facts:
    return thread.title, thread.status, thread.metadata


def _is_new(delta: ThreadDelta, known: KnownThread) -> bool:
    if known.token is None:
        return bool(delta.messages)
    return bool(delta.messages or delta.state or delta.order is not None or _facts(delta.thread) != known.facts)


def _unwritten(then: Change, new: ThreadDelta | None) -> Change:
    """Return the changes in memory that the history from the service does not contain."""
    if new is None:
        return Change()
    written = {message.id: message.data for message in then.messages}
    messages = [message for message in new.messages if written.get(message.id) != message.data]
    return Change(messages, state=new.state if new.state != then.state else None)


def _joined(then: Change, stay: Sequence[StoredMessage], unwritten: Change) -> Change:
    """Return the change that merges the history from the service into memory.

    Messages of ``stay`` remain and are sorted after the history. A message that was written before and is missing in a
    complete history was deleted by another process, so it is not in ``stay``.
    """
    order = dict.fromkeys([*(then.order or ()), *(message.id for message in stay)])
    newer = {message.id for message in unwritten.messages}
    messages = [message for message in then.messages if message.id not in newer]
    return Change(messages, list(order), then.state if unwritten.state is None else None, then.title)
