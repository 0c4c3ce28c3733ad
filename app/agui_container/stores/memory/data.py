"""Data of the store in memory, and its limits.

Rule: only records of ended runs and idle threads are evicted, the oldest first. The log reports evicted threads. The
events of runs have no limit here, because only a store that outlives the process is given any.
"""

import logging
import secrets
from bisect import bisect_left, insort
from collections import Counter, OrderedDict
from collections.abc import Iterator
from operator import itemgetter
from typing import Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from agui_container.ports.records import (
    DAY,
    Change,
    RunKey,
    RunRecord,
    StoredMessage,
    ThreadKey,
    ThreadRecord,
    ThreadStatus,
    size_of_messages,
)
from agui_container.protocol.wire.envelope import Envelope
from agui_container.runtime.eviction_queue import EvictionQueue
from agui_container.runtime.memory_notes import MAX_BYTES, MAX_THREADS, MemoryNotes

NUMBER_BITS = 59
"""Random bits of the first number. Tokens contain numbers, and a token of an earlier process must not match here."""

LOG_EVERY = 1_000
"""Evicted threads per log line, because at the limit every new thread evicts another."""

logger = logging.getLogger(__name__)


class Bounds(Struct, frozen=True):
    """Limits of the data in memory.

    Attributes:
        records: runs whose ids are known, so that a late retry does not start the run again.
        threads: threads.
        thread_bytes: bytes of their messages and states.
        noted_threads: threads with notes.
        note_bytes: bytes of these notes.
    """

    records: int = 100_000
    threads: int = 10_000
    thread_bytes: int = 256_000_000
    noted_threads: int = MAX_THREADS
    note_bytes: int = MAX_BYTES


E = TypeVar("E")

Position = tuple[float, int]
"""Place of an entry in its group. Two entries never have the same number."""

position_of = itemgetter(0)


class SortedGroups(Generic[E]):
    """Entries by group, sorted by their positions, so that a page of a list takes no look at all entries."""

    def __init__(self) -> None:
        self._groups: dict[str, list[tuple[Position, E]]] = {}

    def add(self, group: str, position: Position, entry: E) -> None:
        insort(self._groups.setdefault(group, []), (position, entry), key=position_of)

    def remove(self, group: str, position: Position) -> None:
        entries = self._groups[group]
        del entries[bisect_left(entries, position, key=position_of)]
        if not entries:
            del self._groups[group]

    def last_first(self, group: str, below: Position | None = None) -> Iterator[tuple[Position, E]]:
        """Iterate the entries of a group below a position, the last one first. Nothing may change meanwhile."""
        entries = self._groups.get(group, [])
        end = len(entries) if below is None else bisect_left(entries, below, key=position_of)
        return (entries[at] for at in range(end - 1, -1, -1))


class TokenCounter:
    """Tokens of owners on the last day that was asked for."""

    def __init__(self) -> None:
        self._day, self._tokens = 0.0, Counter[str]()

    def of_day(self, now: float) -> Counter[str]:
        if now // DAY != self._day:
            self._day, self._tokens = now // DAY, Counter()
        return self._tokens


class MemoryRun(Struct, eq=False):
    record: RunRecord
    number: int
    envelopes: list[Envelope] = field(default_factory=list)


class MemoryThread(Struct, eq=False):
    """A thread with its messages, state and runs.

    Attributes:
        messages: messages by id, in order.
        revisions: revision at which each message last changed, by message id.
        runs: runs by id, oldest first.
        place: place in the list of its owner's threads.
        turn: status before the active run.
        items_size: bytes of messages.
    """

    record: ThreadRecord
    number: int
    place: Position
    messages: dict[str, StoredMessage] = field(default_factory=dict)
    revisions: dict[str, int] = field(default_factory=dict)
    runs: dict[str, MemoryRun] = field(default_factory=dict)
    state: bytes | None = None
    turn: ThreadStatus = ThreadStatus.NOT_STARTED
    revision: int = 0
    state_revision: int = 0
    order_revision: int = 0
    items_size: int = 0

    @property
    def size(self) -> int:
        """Estimated bytes in memory."""
        return self.items_size + len(self.state or b"")

    def touch(self, record: ThreadRecord) -> None:
        """Begin a new revision with this record."""
        self.revision += 1
        self.record = record

    def apply(self, change: Change) -> set[str]:
        """Apply a change as part of the current revision. Equal values are not a change.

        Return the ids of the messages that it removes.
        """
        removed: set[str] = set()
        for message in change.messages:
            existing = self.messages.get(message.id)
            if existing is None or existing.data != message.data:
                self.messages[message.id] = message
                self.revisions[message.id] = self.revision
                self.items_size += size_of_messages([message])
                self.items_size -= 0 if existing is None else size_of_messages([existing])
        if change.order is not None:
            removed = self._reorder([name for name in dict.fromkeys(change.order) if name in self.messages])
        if change.state is not None and change.state != self.state:
            self.state, self.state_revision = change.state, self.revision
        if change.title is not None and self.record.title is None:
            self.record = replace(self.record, title=change.title)
        return removed

    def _reorder(self, order: list[str]) -> set[str]:
        removed = self.messages.keys() - set(order)
        if order != list(self.messages):
            self.items_size -= size_of_messages(self.messages.values())
            self.messages = {name: self.messages[name] for name in order}
            self.order_revision = self.revision
            self.items_size += size_of_messages(self.messages.values())
        return removed


class MemoryData:
    """All threads and runs. Runs are sorted by claim, threads by last change."""

    def __init__(self, bounds: Bounds) -> None:
        self.threads: OrderedDict[ThreadKey, MemoryThread] = OrderedDict()
        self.threads_by_owner = SortedGroups[MemoryThread]()
        self.runs: OrderedDict[RunKey, MemoryRun] = OrderedDict()
        self.tokens = TokenCounter()
        self.notes = MemoryNotes(bounds.note_bytes, bounds.noted_threads)
        self._record_eviction = EvictionQueue[RunKey](bounds.records)
        self.eviction = EvictionQueue[ThreadKey](bounds.threads, bounds.thread_bytes)
        self._last_number = 0
        self._evicted = 0

    def next_number(self) -> int:
        """Return a number that was never used before, by any process.

        The first number is drawn when it is needed, so processes that are restored from one snapshot draw different
        ones.
        """
        self._last_number = (self._last_number or secrets.randbits(NUMBER_BITS) | 1 << NUMBER_BITS) + 1
        return self._last_number

    def create_thread(self, record: ThreadRecord) -> MemoryThread:
        number = self.next_number()
        thread = MemoryThread(record, number, (record.changed_at, number))
        self.threads[record.key] = thread
        self.threads_by_owner.add(record.key.owner, thread.place, thread)
        self.eviction.put(record.key)
        return thread

    def add_run(self, thread: MemoryThread, run: MemoryRun) -> None:
        key = run.record.key
        self.runs[key] = thread.runs[key.run_id] = run
        self._record_eviction.put(key)

    def change(self, thread: MemoryThread, change: Change) -> None:
        """Apply a change to a thread after ``touch``, and enforce the limits."""
        if removed := thread.apply(change):
            self.notes.remove_where(thread.record.key, removed)
        if change.notes:
            self.notes.put(thread.record.key, change.notes)
        self._move_in_list(thread)
        self.threads.move_to_end(thread.record.key)
        self.eviction.put(thread.record.key, thread.size)
        self._evict_threads()

    def _move_in_list(self, thread: MemoryThread) -> None:
        owner, place = thread.record.key.owner, (thread.record.changed_at, thread.number)
        if place != thread.place:
            self.threads_by_owner.remove(owner, thread.place)
            self.threads_by_owner.add(owner, place, thread)
            thread.place = place

    def ended_runs(self, ended_before: float, limit: int) -> list[MemoryRun]:
        """Return up to ``limit`` runs with events that ended before ``ended_before``, oldest first."""
        ended = [run for run in self.runs.values() if run.record.has_events and not run.record.is_open]
        ended.sort(key=ended_at)
        return [run for run in ended if ended_at(run) < ended_before][:limit]

    def forget(self, run: MemoryRun) -> None:
        """Delete the events of an ended run."""
        run.envelopes.clear()
        run.record = replace(run.record, has_events=False)

    def remove(self, thread: MemoryThread) -> None:
        del self.threads[thread.record.key]
        self.threads_by_owner.remove(thread.record.key.owner, thread.place)
        self.eviction.remove(thread.record.key)
        self.notes.remove(thread.record.key)
        for run in thread.runs.values():
            self._delete_record(run.record.key)

    def evict_records(self) -> None:
        """Enforce the limit of records. Call this when a run has ended."""
        while self._record_eviction.is_full:
            run = next((run for key in self._record_eviction if not (run := self.runs[key]).record.is_open), None)
            if run is None:
                return
            self.remove_run(self.threads[run.record.key.thread], run)

    def remove_run(self, thread: MemoryThread, run: MemoryRun) -> None:
        del thread.runs[run.record.key.run_id]
        self._delete_record(run.record.key)

    def _delete_record(self, key: RunKey) -> None:
        self._record_eviction.remove(key)
        del self.runs[key]

    def _evict_threads(self) -> None:
        """Evict idle threads, but never the thread that changed last."""
        while self.eviction.is_full:
            last = next(reversed(self.threads))
            threads = (self.threads[key] for key in self.eviction if key != last)
            idle = next((it for it in threads if not any(run.record.is_open for run in it.runs.values())), None)
            if idle is None:
                return
            self.remove(idle)
            self._evicted += 1
            if self._evicted % LOG_EVERY == 1:
                logger.warning("threads evicted from memory count=%d", self._evicted)


def ended_at(run: MemoryRun) -> float:
    """Return the end of a run in Unix seconds."""
    return run.record.ended_at or 0.0
