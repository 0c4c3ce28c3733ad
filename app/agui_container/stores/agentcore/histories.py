"""Which threads this process has read from AgentCore Memory, and what of them is not written yet.

Rule: the service gets what a thread's ``changes`` say since the last write that succeeded. So a write that failed needs
no memory of its own: the next one brings what it would have brought. Of one thread, one thing is done at a time.
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
"""Threads of which it is known how far they are written. One that is not among them is written anew."""

FINDERS = 4
"""Threads that are read at a time for lists."""

TICK = 1e-6
"""Seconds between two turns of a thread, at least: turns are read in the order of their times."""

UNREAD = StoreWarning("history.unread", "Earlier messages of this conversation could not be read, or not all of them.")
UNWRITTEN = StoreWarning(
    "history.unwritten", "The last turn could not be stored yet. It will be stored with the next one."
)

Facts = tuple[str | None, ThreadStatus, bytes | None]
"""A thread's title, status and metadata."""

logger = logging.getLogger(__name__)


class KnownThread(Struct, eq=False):
    """What is known of a thread in the service.

    Attributes:
        read: whether it has been read and need not be again.
        whole: whether what is here is all of it, so that its order can be told.
        token, facts: what of the thread is written: up to where, and its title, status and metadata.
        at: when its last turn ended.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    read: bool = False
    whole: bool = False
    token: str | None = None
    facts: Facts | None = None
    at: float = 0.0
    warnings: dict[str, StoreWarning] = field(default_factory=dict)

    def add_warning(self, warning: StoreWarning) -> None:
        """Keep it until it is told."""
        self.warnings[warning.name] = warning


class ThreadHistories:
    """The messages of threads, here and in the service.

    Args:
        here: the threads in memory.
        service: the others, and copies of those.
    """

    def __init__(self, here: MemoryThreads, service: MemoryService) -> None:
        self._here = here
        self._service = service
        self._known: OrderedDict[ThreadKey, KnownThread] = OrderedDict()
        self._finders = asyncio.Semaphore(FINDERS)

    # --- reading ---

    async def load_if_absent(self, key: ThreadKey) -> None:
        """Read a thread that is not here. Raises ``StoreUnavailable``."""
        if await self._here.get(key) is None:
            await self.read(key)
            if await self._here.get(key) is None:
                self._known.pop(key, None)  # nothing is to be known of it

    async def read(self, key: ThreadKey) -> None:
        """Read a thread, unless that was done and it is here. Raises ``StoreUnavailable``."""
        known = self._of(key)
        if known.read and await self._here.get(key) is not None:
            return
        async with known.lock:
            if not known.read or await self._here.get(key) is None:
                history, whole = await self._service.history(key.owner, session_id(key.thread_id))
                await self._restore(key, known, history, whole=whole)

    async def begin(self, key: ThreadKey) -> None:
        """Read a thread for a run, which goes on without what cannot be read."""
        try:
            await self.read(key)
        except StoreUnavailable as error:
            logger.warning("thread=<%s> | its history is not read: %s", key.thread_id, error)
            self._of(key).add_warning(UNREAD)

    async def find(self, owner: str) -> None:
        """Read an owner's threads that are not here, as far as a list of them goes. Raises ``StoreUnavailable``."""
        keys = [key for key in self._known if key.owner == owner]
        here = {session_id(key.thread_id) for key in keys if await self._here.get(key) is not None}
        missing = [session for session in await self._service.sessions(owner) if session not in here]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._find(owner, session)) for session in missing]
        if not all(task.result() for task in tasks):
            raise StoreUnavailable("AgentCore Memory: not all threads could be read")

    async def _find(self, owner: str, session: str) -> bool:
        """Read a thread for a list; whether that succeeded. It may go on elsewhere, so its next run reads it again."""
        async with self._finders:
            try:
                history, whole = await self._service.history(owner, session)
            except StoreUnavailable as error:
                logger.warning("| a thread is not read for a list: %s", error)
                return False
        if history is not None:
            known = self._of(history.thread.key)
            async with known.lock:
                if await self._here.get(history.thread.key) is None:
                    await self._restore(history.thread.key, known, history, whole=whole)
                    known.read = False
        return True

    async def _restore(self, key: ThreadKey, known: KnownThread, history: ThreadHistory | None, *, whole: bool) -> None:
        """Put what was read before what is here. What is here and not written yet stays as it is."""
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
        """Write what is new of a thread as one turn; what cannot be written goes with the next one.

        ``at`` is when that was, in Unix seconds; the same of the same moment is written once. ``encode_command``:
        whether what is new was said in this thread, so that strategies are shown it.
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
                logger.warning("thread=<%s> | its last turn is not written: %s", key.thread_id, error)
                known.add_warning(UNWRITTEN)
                return
            known.token, known.facts, known.at = delta.next, _facts(delta.thread), at
            known.warnings.pop(UNWRITTEN.name, None)

    async def remove(self, key: ThreadKey) -> bool:
        """Remove a thread here and in the service; whether it was. Raises ``StoreUnavailable``: call it again."""
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

    # --- what is known ---

    def warnings(self, key: ThreadKey) -> Sequence[StoreWarning]:
        """What went wrong since this was last asked."""
        known = self._known.get(key)
        if known is None:
            return ()
        told, known.warnings = list(known.warnings.values()), {}
        return told

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
    """What is new here, and not among what was read."""
    if new is None:
        return Change()
    written = {message.id: message.data for message in then.messages}
    messages = [message for message in new.messages if written.get(message.id) != message.data]
    return Change(messages, state=new.state if new.state != then.state else None)


def _joined(then: Change, stay: Sequence[StoredMessage], unwritten: Change) -> Change:
    """What was read, but for what is newer here; and behind it what stays of here.

    What was written and is not read any more was removed by another process: it stays only where not all was read.
    """
    order = dict.fromkeys([*(then.order or ()), *(message.id for message in stay)])
    newer = {message.id for message in unwritten.messages}
    messages = [message for message in then.messages if message.id not in newer]
    return Change(messages, list(order), then.state if unwritten.state is None else None, then.title)
