"""The store in memory: runs, threads and notes.

Rule: no method awaits anything but a merge, whose run has the thread already. So each call is atomic on the event loop.

Rule: at a limit, idle threads are evicted, the one without a change for the longest time first. The log reports it.
"""

import logging
import math
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from agui_container.ports.records import (
    DAY,
    ITEM_BYTES,
    Begun,
    Busy,
    Change,
    Claim,
    DayTokens,
    Ending,
    Exists,
    Page,
    RunKey,
    RunRecord,
    RunStatus,
    StoredMessage,
    ThreadDelta,
    ThreadKey,
    ThreadNote,
    ThreadRecord,
    ThreadStatus,
)
from agui_container.ports.store import (
    PAGE,
    CannotFork,
    Delete,
    Fork,
    LeaseLost,
    Merge,
    Rename,
)
from agui_container.protocol.envelope import Envelope
from agui_container.stores.memory.thread import MemoryThread
from agui_container.stores.page_tokens import (
    make_last_token,
    make_page,
    parse_last_token,
)

MAX_THREADS = 10_000
MAX_BYTES = 320_000_000
"""Estimated bytes of the messages, states, notes and runs of all threads."""

NUMBER_BITS = 59
"""Random bits of the first number. Tokens contain numbers, and a token of an earlier process must not match here."""

LOG_EVERY = 1_000
"""Evicted threads per log line, because at the limit every new thread evicts another."""

logger = logging.getLogger(__name__)


class MemoryStore:
    """A ``Store`` whose data ends with the process."""

    writes_turns = False

    def __init__(
        self, now: Callable[[], float] = time.time, *, max_threads: int = MAX_THREADS, max_bytes: int = MAX_BYTES
    ) -> None:
        self._threads: OrderedDict[ThreadKey, MemoryThread] = OrderedDict()
        """Threads, sorted by last change."""
        self._now = now
        self._max_threads = max_threads
        self._max_bytes = max_bytes
        self._bytes = self._last_number = self._evicted = 0
        self._day, self._day_tokens = 0.0, Counter[str]()
        """Tokens of owners on the last day that was asked for."""

    async def open(self) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""

    # --- data and limits ---

    def _next_number(self) -> int:
        """Return a number that was never used before, by any process.

        The first number is drawn when it is needed, so processes that are restored from one snapshot draw different
        ones.
        """
        self._last_number = (self._last_number or secrets.randbits(NUMBER_BITS) | 1 << NUMBER_BITS) + 1
        return self._last_number

    def _create(self, record: ThreadRecord) -> MemoryThread:
        thread = self._threads[record.key] = MemoryThread(record, self._next_number())
        return thread

    def _change(self, thread: MemoryThread, change: Change) -> None:
        """Apply a change to a thread after ``touch``, and enforce the limits."""
        self._bytes -= thread.size
        thread.apply(change)
        self._bytes += thread.size
        self._threads.move_to_end(thread.record.key)
        while len(self._threads) > self._max_threads or self._bytes > self._max_bytes:
            idle = next((it for it in self._threads.values() if it is not thread and not it.has_open_run), None)
            if idle is None:
                return
            self._remove(idle)
            self._evicted += 1
            if self._evicted % LOG_EVERY == 1:
                logger.warning("threads evicted from memory count=%d", self._evicted)

    def _remove(self, thread: MemoryThread) -> None:
        del self._threads[thread.record.key]
        self._bytes -= thread.size

    # --- the life of a run ---

    async def run(self, key: RunKey) -> RunRecord | None:
        return self._find(key)

    def _find(self, key: RunKey) -> RunRecord | None:
        thread = self._threads.get(key.thread)
        return None if thread is None else thread.runs.get(key.run_id)

    async def enqueue(self, claim: Claim) -> RunRecord | None:
        if (existing := self._find(claim.key)) is not None:
            return existing
        self._set_run(self._thread_of(claim), _run_of(claim, RunStatus.QUEUED))
        return None

    async def begin(self, claim: Claim, merge: Merge) -> Begun | Exists | Busy:
        queued = self._find(claim.key)
        if queued is None and claim.is_queued:
            raise LeaseLost(claim.key.run_id)
        if queued is not None and not claim.is_queued:
            return Exists(queued)
        thread = self._thread_of(claim)
        if (other := thread.preventing_run(claim)) is not None:
            return Busy(other)
        return await self._begin(claim, thread, queued, merge)

    async def _begin(self, claim: Claim, thread: MemoryThread, queued: RunRecord | None, merge: Merge) -> Begun:
        run = _run_of(claim, RunStatus.RUNNING)
        self._set_run(thread, run)
        thread.turn = thread.record.status
        thread.touch(replace(thread.record, status=ThreadStatus.AGENT_TURN, active_run=claim.key.run_id))
        try:
            change = await merge(thread.delta(None, notes=claim.notes))
        except BaseException:
            if self._find(claim.key) is run:  # else it was deleted meanwhile
                self._undo(thread, run, queued)
            raise
        if self._threads.get(thread.record.key) is not thread:
            raise LeaseLost(claim.key.run_id)
        thread.touch(replace(thread.record, changed_at=claim.started_at))
        self._change(thread, change)
        return Begun(run)

    def _thread_of(self, claim: Claim) -> MemoryThread:
        at, key = claim.started_at, claim.key.thread
        return self._threads.get(key) or self._create(ThreadRecord(key, ThreadStatus.NOT_STARTED, at, at))

    def _set_run(self, thread: MemoryThread, run: RunRecord) -> None:
        self._bytes -= thread.size
        thread.set_run(run)
        self._bytes += thread.size

    def _undo(self, thread: MemoryThread, run: RunRecord, queued: RunRecord | None) -> None:
        """Undo a claim whose merge has failed."""
        thread.touch(replace(thread.record, status=thread.turn, active_run=None))
        if queued is not None:
            thread.set_run(queued)
            return
        self._bytes -= ITEM_BYTES
        thread.remove_run(run)
        if thread.turn is ThreadStatus.NOT_STARTED and not thread.runs:
            self._remove(thread)

    async def finish(self, run: RunKey, replica: str, envelopes: Sequence[Envelope], ending: Ending) -> None:  # noqa: ARG002 - as in the port
        before = self._find(run)
        if before is None:
            raise LeaseLost(run.run_id)
        if not before.is_open:
            if (before.status, before.ended_at) == (ending.status, ending.ended_at):
                return
            raise LeaseLost(run.run_id)
        thread = self._threads[run.thread]
        thread.set_run(
            replace(before, status=ending.status, ended_at=ending.ended_at, usage=ending.usage, error=ending.error)
        )
        record = replace(thread.record, changed_at=ending.ended_at)
        if before.status is RunStatus.RUNNING:
            record = replace(record, status=ending.turn or thread.turn, active_run=None)
        thread.touch(record)
        self._change(thread, ending.change)
        if ending.tokens:
            self._tokens_of_day(self._now())[run.owner] += ending.tokens

    async def tokens(self, owner: str) -> DayTokens:
        now = self._now()
        return DayTokens(self._tokens_of_day(now)[owner], now)

    def _tokens_of_day(self, now: float) -> Counter[str]:
        if now // DAY != self._day:
            self._day, self._day_tokens = now // DAY, Counter()
        return self._day_tokens

    # --- threads ---

    async def thread(
        self, key: ThreadKey, since: str | None = None, *, messages: bool = True, notes: Sequence[str] = ()
    ) -> ThreadDelta | None:
        thread = self._threads.get(key)
        return None if thread is None else thread.delta(since, messages=messages, notes=notes)

    async def messages(
        self, key: ThreadKey, *, limit: int = PAGE, before: str | None = None, last: str | None = None
    ) -> Page[StoredMessage] | None:
        thread = self._threads.get(key)
        return None if thread is None else thread.page(limit, before, last)

    async def threads(self, owner: str, *, limit: int = PAGE, page: str | None = None) -> Page[ThreadRecord]:
        below = None if page is None else parse_last_token(page)
        found = [(it.record.changed_at, it.number, it.record) for it in self._threads.values()]
        found = [it for it in found if it[2].key.owner == owner and (below is None or it[:2] < below)]
        found.sort(reverse=True)
        items, next_token = make_page(found, limit, lambda it: make_last_token(it[0], it[1]))
        return Page([record for *_, record in items], next_token)

    async def edit(self, key: ThreadKey, edit: Rename | Fork | Delete) -> ThreadRecord | None:
        thread = self._threads.get(key)
        if thread is None:
            return None
        match edit:
            case Rename():
                thread.touch(replace(thread.record, title=edit.title))
            case Delete():
                self._remove(thread)
            case Fork():
                return self._fork(thread, edit)
        return thread.record

    def _fork(self, thread: MemoryThread, fork: Fork) -> ThreadRecord:
        message = thread.messages.get(fork.message_id)
        if message is None:
            raise CannotFork("no such message")
        if message.run_id is not None and message.run_id == thread.record.active_run:
            raise CannotFork("the message's run is active", active=True)
        source = thread.record.key
        key, origin = ThreadKey(source.owner, fork.thread_id), (source.thread_id, fork.message_id)
        existing = self._threads.get(key)
        if existing is not None:
            if existing.record.forked_from != origin:
                raise CannotFork("the new thread's id is taken", id_exists=True)
            return existing.record
        at, title, ids = fork.created_at, thread.record.title, list(thread.messages)
        history = [replace(thread.messages[name], run_id=None) for name in ids[: ids.index(message.id) + 1]]
        new = ThreadRecord(key, fork.status, at, at, title, forked_from=origin)
        self._change(self._create(new), Change(history, state=thread.state))
        return new

    # --- copies of threads that are kept elsewhere ---

    def has(self, key: ThreadKey) -> bool:
        return key in self._threads

    def changes(self, key: ThreadKey, since: str | None = None) -> ThreadDelta | None:
        """Return the changes of a thread as ``thread`` does, but only the notes that have changed."""
        thread = self._threads.get(key)
        return None if thread is None else replace(thread.delta(since), notes=thread.changed_notes(since))

    def restore(self, whole: ThreadDelta) -> None:
        """Take over a thread that was read from elsewhere. A known thread keeps its record."""
        thread = self._threads.get(whole.thread.key) or self._create(whole.thread)
        thread.touch(thread.record)
        self._change(thread, Change(whole.messages, whole.order, whole.state, whole.thread.title, whole.notes))

    # --- notes ---

    async def notes(self, thread: ThreadKey, *kinds: str) -> Sequence[ThreadNote]:
        stored = self._threads.get(thread)
        return [] if stored is None else stored.notes_of(kinds)

    async def put_notes(self, thread: ThreadKey, notes: Sequence[ThreadNote]) -> bool:
        stored = self._threads.get(thread)
        if stored is not None:
            stored.touch(stored.record)
            self._change(stored, Change(notes=notes))
        return stored is not None

    async def settle_note(self, thread: ThreadKey, note: ThreadNote) -> bool:
        stored = next((it for it in await self.notes(thread, note.kind) if it.id == note.id), None)
        return stored is not None and not stored.is_settled and await self.put_notes(thread, [note])


def _run_of(claim: Claim, status: RunStatus) -> RunRecord:
    """Return the record of a run, whose lease lasts as long as the process."""
    return RunRecord(claim.key, claim.replica, math.inf, status, claim.started_at, fingerprint=claim.fingerprint)
