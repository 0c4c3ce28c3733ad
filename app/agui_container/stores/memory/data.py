"""What the memory store holds, and how much of it.

Rule: only what has ended is forgotten, the oldest first: the events of runs, then their records, then whole threads,
and of those the log tells now and then.
"""

import logging
import secrets
from collections import OrderedDict

from msgspec import Struct, field
from msgspec.structs import replace

from agui_container.ports.records import (
    Change,
    Review,
    RunKey,
    RunRecord,
    StoredGoal,
    StoredMessage,
    ThreadKey,
    ThreadRecord,
    ThreadStatus,
)
from agui_container.protocol.wire.envelope import Envelope

MESSAGE_BYTES = 500
"""What a message takes in memory besides its JSON."""

NUMBER_BITS = 59
"""Of the number before the first one: tokens name numbers, and those of an earlier process must not fit here."""

LOGGED = 1_000
"""Threads that are forgotten for each line of the log: once there are too many, each new one pushes one out."""

logger = logging.getLogger(__name__)


class Bounds(Struct, frozen=True):
    """What is kept at most.

    Attributes:
        runs, run_bytes: ended runs that can still be read, and their events.
        records: runs whose ids are known, so that a late retry does not run again.
        threads, thread_bytes: conversations, and their messages and states.
    """

    runs: int = 1_000
    run_bytes: int = 256_000_000
    records: int = 100_000
    threads: int = 10_000
    thread_bytes: int = 256_000_000


class MemoryRun(Struct, eq=False):
    """A run, its envelopes, and the goals it was given."""

    record: RunRecord
    number: int
    envelopes: list[Envelope] = field(default_factory=list)
    goals: dict[int, StoredGoal] = field(default_factory=dict)
    is_cancel_requested: bool = False
    size: int = 0


class MemoryThread(Struct, eq=False):
    """A thread.

    Attributes:
        messages: in order; ``revisions`` says when each last changed.
        turn: the status before the active run.
    """

    record: ThreadRecord
    number: int
    messages: dict[str, StoredMessage] = field(default_factory=dict)
    revisions: dict[str, int] = field(default_factory=dict)
    runs: dict[str, MemoryRun] = field(default_factory=dict)
    reviews: dict[str, tuple[int, Review]] = field(default_factory=dict)
    state: bytes | None = None
    turn: ThreadStatus = ThreadStatus.NOT_STARTED
    revision: int = 0
    state_revision: int = 0
    order_revision: int = 0
    goals_revision: int = 0
    size: int = 0

    def touch(self, record: ThreadRecord) -> None:
        """Begin a revision, with these facts."""
        self.revision += 1
        self.record = record

    def apply(self, change: Change) -> None:
        """Make the change part of the revision that was begun; what is the same already is no change."""
        for message in change.messages:
            known = self.messages.get(message.id)
            if known is None or known.data != message.data:
                self.messages[message.id] = message
                self.revisions[message.id] = self.revision
                self.size += size_of_message(message) - (0 if known is None else size_of_message(known))
        if change.order is not None:
            self._reorder([name for name in dict.fromkeys(change.order) if name in self.messages])
        if change.state is not None and change.state != self.state:
            self.size += len(change.state) - len(self.state or b"")
            self.state, self.state_revision = change.state, self.revision
        if change.title is not None and self.record.title is None:
            self.record = replace(self.record, title=change.title)

    def _reorder(self, order: list[str]) -> None:
        if order != list(self.messages):
            self.messages = {name: self.messages[name] for name in order}
            self.order_revision = self.revision
            self.size = (
                len(self.state or b"")
                + len(self.record.metadata or b"")
                + sum(map(size_of_message, self.messages.values()))
            )


def size_of_message(message: StoredMessage) -> int:
    """Bytes of memory."""
    return len(message.data) + MESSAGE_BYTES


class MemoryData:
    """All threads and runs: the runs in the order of their claims, the threads in that of their last change."""

    def __init__(self, bounds: Bounds) -> None:
        self.threads: OrderedDict[ThreadKey, MemoryThread] = OrderedDict()
        self.runs: OrderedDict[RunKey, MemoryRun] = OrderedDict()
        self._bounds = bounds
        self._ended: OrderedDict[RunKey, MemoryRun] = OrderedDict()
        self._run_bytes = 0
        self._thread_bytes = 0
        self._last_number = 0
        self._forgotten = 0

    def next_number(self) -> int:
        """A number that was never given before, by another process neither.

        The first is drawn when it is needed: processes that are restored from one snapshot draw their own.
        """
        self._last_number = (self._last_number or secrets.randbits(NUMBER_BITS) | 1 << NUMBER_BITS) + 1
        return self._last_number

    def make(self, record: ThreadRecord) -> MemoryThread:
        """A new thread."""
        thread = self.threads[record.key] = MemoryThread(record, self.next_number())
        return thread

    def change(self, thread: MemoryThread, change: Change) -> None:
        """Apply a change to a thread that was touched, and keep within bounds."""
        self._thread_bytes -= thread.size
        thread.apply(change)
        self._thread_bytes += thread.size
        self.threads.move_to_end(thread.record.key)
        self._make_room()

    def annotate(self, thread: MemoryThread, metadata: bytes | None) -> None:
        """Give a thread this metadata, and keep within bounds."""
        grown = len(metadata or b"") - len(thread.record.metadata or b"")
        thread.touch(replace(thread.record, metadata=metadata))
        thread.size += grown
        self._thread_bytes += grown
        self._make_room()

    def ended(self, run: MemoryRun) -> None:
        """A run is over: from now on it may be forgotten."""
        self._ended[run.record.key] = run
        run.size = sum(len(envelope.data) for envelope in run.envelopes)
        self._run_bytes += run.size
        while len(self._ended) > self._bounds.runs or self._run_bytes > self._bounds.run_bytes:
            self.forget(next(iter(self._ended.values())))
        self._forget_records()

    def ended_runs(self, ended_before: float, limit: int) -> list[MemoryRun]:
        """Kept runs that ended before then."""
        late = [run for run in self._ended.values() if (run.record.ended_at or 0.0) < ended_before]
        return late[:limit]

    def forget(self, run: MemoryRun) -> None:
        """Let go of an ended run's events."""
        if self._ended.pop(run.record.key, None) is not None:
            self._run_bytes -= run.size
            run.envelopes.clear()
            run.record = replace(run.record, kept=False)

    def remove(self, thread: MemoryThread) -> None:
        """Let go of a thread and everything of it."""
        del self.threads[thread.record.key]
        self._thread_bytes -= thread.size
        for run in thread.runs.values():
            self.forget(run)
            self.runs.pop(run.record.key, None)

    def _forget_records(self) -> None:
        while len(self.runs) > self._bounds.records:
            forgotten = (key for key, run in self.runs.items() if not run.record.is_active and not run.record.kept)
            key = next(forgotten, None)
            if key is None:
                return
            del self.threads[key.thread].runs[key.run_id], self.runs[key]

    def _make_room(self) -> None:
        """Never the thread that changed last, and none that runs."""
        while len(self.threads) > self._bounds.threads or self._thread_bytes > self._bounds.thread_bytes:
            idle = next((thread for thread in self.threads.values() if thread.record.active_run is None), None)
            if idle is None or idle is next(reversed(self.threads.values())):
                return
            self.remove(idle)
            self._forgotten += 1
            if self._forgotten % LOGGED == 1:
                logger.warning("threads are forgotten, because there are too many: %d so far", self._forgotten)
