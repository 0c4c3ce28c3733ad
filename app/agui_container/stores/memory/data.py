"""Data of the store in memory, and its limits.

Rule: only records of ended runs and idle threads are evicted, the oldest first. The log reports evicted threads. The
events of runs have no limit here, because only a store that outlives the process is given any.
"""

import logging
import secrets
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from agui_container.ports.records import (
    Change,
    Feedback,
    Review,
    RunKey,
    RunRecord,
    StoredGoal,
    StoredMessage,
    ThreadKey,
    ThreadRecord,
    ThreadStatus,
    Triage,
    size_of_feedback,
    size_of_goals,
    size_of_messages,
)
from agui_container.protocol.wire.envelope import Envelope
from agui_container.runtime.eviction_queue import EvictionQueue
from agui_container.runtime.memory_interrupts import MAX_BYTES, MAX_SCOPES

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
        thread_bytes: bytes of their messages, goals, feedback, states and metadata.
        interrupts: threads and parts of threads with interrupts that wait or were answered.
        interrupt_bytes: bytes of these interrupts.
    """

    records: int = 100_000
    threads: int = 10_000
    thread_bytes: int = 256_000_000
    interrupts: int = MAX_SCOPES
    interrupt_bytes: int = MAX_BYTES


E = TypeVar("E")

Position = tuple[float, int]
"""Place of an entry in its group. Two entries never have the same number."""

position_of = itemgetter(0)


class SortedGroups(Generic[E]):
    """Entries by group, sorted by their positions, so that a page of a list takes no look at all entries."""

    def __init__(self) -> None:
        self._groups: dict[str, list[tuple[Position, E]]] = {}

    def add(self, group: str, position: Position, entry: E) -> None:
        """Add an entry."""
        insort(self._groups.setdefault(group, []), (position, entry), key=position_of)

    def remove(self, group: str, position: Position) -> None:
        """Remove the entry at a position."""
        entries = self._groups[group]
        del entries[bisect_left(entries, position, key=position_of)]
        if not entries:
            del self._groups[group]

    def last_first(self, group: str, below: Position | None = None) -> Iterator[tuple[Position, E]]:
        """Iterate the entries of a group below a position, the last one first. Nothing may change meanwhile."""
        entries = self._groups.get(group, [])
        end = len(entries) if below is None else bisect_left(entries, below, key=position_of)
        return (entries[at] for at in range(end - 1, -1, -1))


class MemoryRun(Struct, eq=False):
    """A run with its envelopes."""

    record: RunRecord
    number: int
    envelopes: list[Envelope] = field(default_factory=list)
    is_cancel_requested: bool = False


class MemoryThread(Struct, eq=False):
    """A thread with its messages, state, runs, goals and feedback.

    Attributes:
        messages: messages by id, in order.
        revisions: revision at which each message last changed, by message id.
        runs: runs by id, oldest first.
        goals: goals of each run that has some, by run id and index, oldest first.
        reviews: number and review of each feedback, by message id.
        place: place in the list of its owner's threads.
        turn: status before the active run.
        items_size: bytes of messages, goals and feedback.
    """

    record: ThreadRecord
    number: int
    place: Position
    messages: dict[str, StoredMessage] = field(default_factory=dict)
    revisions: dict[str, int] = field(default_factory=dict)
    runs: dict[str, MemoryRun] = field(default_factory=dict)
    goals: dict[str, dict[int, StoredGoal]] = field(default_factory=dict)
    reviews: dict[str, tuple[int, Review]] = field(default_factory=dict)
    state: bytes | None = None
    turn: ThreadStatus = ThreadStatus.NOT_STARTED
    revision: int = 0
    state_revision: int = 0
    order_revision: int = 0
    goals_revision: int = 0
    items_size: int = 0

    @property
    def size(self) -> int:
        """Estimated bytes in memory."""
        return self.items_size + len(self.state or b"") + len(self.record.metadata or b"")

    def touch(self, record: ThreadRecord) -> None:
        """Begin a new revision with this record."""
        self.revision += 1
        self.record = record

    def apply(self, change: Change) -> None:
        """Apply a change as part of the current revision. Equal values are not a change."""
        for message in change.messages:
            existing = self.messages.get(message.id)
            if existing is None or existing.data != message.data:
                self.messages[message.id] = message
                self.revisions[message.id] = self.revision
                self.items_size += size_of_messages([message])
                self.items_size -= 0 if existing is None else size_of_messages([existing])
        if change.order is not None:
            self._reorder([name for name in dict.fromkeys(change.order) if name in self.messages])
        if change.state is not None and change.state != self.state:
            self.state, self.state_revision = change.state, self.revision
        if change.title is not None and self.record.title is None:
            self.record = replace(self.record, title=change.title)

    def _reorder(self, order: list[str]) -> None:
        if order != list(self.messages):
            self.items_size -= size_of_messages(self.messages.values())
            self.messages = {name: self.messages[name] for name in order}
            self.order_revision = self.revision
            self.items_size += size_of_messages(self.messages.values())

    def put_goals(self, run_id: str, goals: Iterable[StoredGoal]) -> None:
        """Add goals of a run, or replace those of the same index, in a new revision."""
        before = self.goals.get(run_id, {})
        after = before | {goal.index: goal for goal in goals}
        self.goals[run_id] = dict(sorted(after.items()))
        self.items_size += size_of_goals(after.values()) - size_of_goals(before.values())
        self.revision += 1
        self.goals_revision = self.revision

    def put_feedback(self, feedback: Feedback, number: int) -> Feedback:
        """Store feedback on a message. It replaces earlier feedback, and keeps its number, triage and creation time."""
        existing = self.reviews.get(feedback.message_id)
        number, review = existing or (number, Review(self.record.key, feedback, Triage()))
        stored = replace(feedback, categories=tuple(feedback.categories), created_at=review.feedback.created_at)
        self.reviews[feedback.message_id] = (number, replace(review, feedback=stored))
        self.items_size += size_of_feedback([stored]) - size_of_feedback([] if existing is None else [review.feedback])
        return stored

    def remove_run(self, run_id: str) -> None:
        """Delete a run and its goals."""
        del self.runs[run_id]
        self.items_size -= size_of_goals(self.goals.pop(run_id, {}).values())


class MemoryData:
    """All threads and runs. Runs are sorted by claim, threads by last change."""

    def __init__(self, bounds: Bounds) -> None:
        self.threads: OrderedDict[ThreadKey, MemoryThread] = OrderedDict()
        self.threads_by_owner = SortedGroups[MemoryThread]()
        self.runs: OrderedDict[RunKey, MemoryRun] = OrderedDict()
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
        """Create a thread."""
        number = self.next_number()
        thread = MemoryThread(record, number, (record.changed_at, number))
        self.threads[record.key] = thread
        self.threads_by_owner.add(record.key.owner, thread.place, thread)
        self.eviction.put(record.key)
        return thread

    def add_run(self, thread: MemoryThread, run: MemoryRun) -> None:
        """Add a run to its thread."""
        key = run.record.key
        self.runs[key] = thread.runs[key.run_id] = run
        self._record_eviction.put(key)

    def change(self, thread: MemoryThread, change: Change) -> None:
        """Apply a change to a thread after ``touch``, and enforce the limits."""
        thread.apply(change)
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

    def annotate(self, thread: MemoryThread, metadata: bytes | None) -> None:
        """Set the metadata of a thread, and enforce the limits."""
        thread.touch(replace(thread.record, metadata=metadata))
        self.resize(thread)

    def resize(self, thread: MemoryThread) -> None:
        """Note that the size of a thread has changed, and enforce the limits."""
        self.eviction.resize(thread.record.key, thread.size)
        self._evict_threads()

    def ended_runs(self, ended_before: float, limit: int) -> list[MemoryRun]:
        """Return up to ``limit`` runs with events that ended before ``ended_before``, oldest first."""
        ended = [run for run in self.runs.values() if run.record.has_events and not run.record.is_active]
        ended.sort(key=ended_at)
        return [run for run in ended if ended_at(run) < ended_before][:limit]

    def forget(self, run: MemoryRun) -> None:
        """Delete the events of an ended run."""
        run.envelopes.clear()
        run.record = replace(run.record, has_events=False)

    def remove(self, thread: MemoryThread) -> None:
        """Delete a thread with all its data."""
        del self.threads[thread.record.key]
        self.threads_by_owner.remove(thread.record.key.owner, thread.place)
        self.eviction.remove(thread.record.key)
        for run in thread.runs.values():
            self._delete_record(run.record.key)

    def evict_records(self) -> None:
        """Enforce the limit of records. Call this when a run has ended."""
        while self._record_eviction.is_full:
            run = next((run for key in self._record_eviction if not (run := self.runs[key]).record.is_active), None)
            if run is None:
                return
            thread = self.threads[run.record.key.thread]
            thread.remove_run(run.record.key.run_id)
            self.eviction.resize(thread.record.key, thread.size)
            self._delete_record(run.record.key)

    def _delete_record(self, key: RunKey) -> None:
        self._record_eviction.remove(key)
        del self.runs[key]

    def _evict_threads(self) -> None:
        """Evict idle threads, but never the thread that changed last."""
        while self.eviction.is_full:
            last = next(reversed(self.threads))
            threads = (self.threads[key] for key in self.eviction if key != last)
            idle = next((thread for thread in threads if thread.record.active_run is None), None)
            if idle is None:
                return
            self.remove(idle)
            self._evicted += 1
            if self._evicted % LOG_EVERY == 1:
                logger.warning("threads evicted from memory count=%d", self._evicted)


def ended_at(run: MemoryRun) -> float:
    """Return the end of a run in Unix seconds."""
    return run.record.ended_at or 0.0
