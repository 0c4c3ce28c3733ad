"""A thread in memory, with its messages, notes and runs, and their size."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import dropwhile, islice
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from agui_container.ports.records import (
    ITEM_BYTES,
    Change,
    Claim,
    Page,
    RunRecord,
    RunStatus,
    StoredMessage,
    ThreadDelta,
    ThreadNote,
    ThreadRecord,
    ThreadStatus,
)
from agui_container.ports.store import READ_BYTES, BadToken
from agui_container.stores.page_tokens import make_revision, parse_revision

K = TypeVar("K", bound=Hashable)
Item = TypeVar("Item", StoredMessage, ThreadNote)

MAX_RUNS = 1_000
"""Runs of a thread whose ids are known, so that a late retry does not start the run again."""


class MemoryThread(Struct, eq=False):
    """A thread with all that belongs to it.

    Attributes:
        messages: messages by id, in order.
        revisions: revision at which each message and note last changed, by its key.
        notes: notes by kind and id, in the order of their first writes.
        runs: runs by id, oldest first.
        turn: status before the active run.
        size: estimated bytes in memory.
    """

    record: ThreadRecord
    number: int
    messages: dict[str, StoredMessage] = field(default_factory=dict)
    revisions: dict[Hashable, int] = field(default_factory=dict)
    notes: dict[tuple[str, str], ThreadNote] = field(default_factory=dict)
    runs: dict[str, RunRecord] = field(default_factory=dict)
    state: bytes | None = None
    turn: ThreadStatus = ThreadStatus.NOT_STARTED
    revision: int = 0
    state_revision: int = 0
    order_revision: int = 0
    size: int = 0

    @property
    def has_open_run(self) -> bool:
        return any(run.is_open for run in self.runs.values())

    def touch(self, record: ThreadRecord) -> None:
        """Begin a new revision with this record."""
        self.revision += 1
        self.record = record

    def apply(self, change: Change) -> None:
        """Apply a change as part of the current revision. Equal values are not a change."""
        for message in change.messages:
            stored = self.messages.get(message.id)
            if stored is None or stored.data != message.data:
                self._put(self.messages, message.id, message)
                self.revisions[message.id] = self.revision
        if change.order is not None:
            self._reorder([name for name in dict.fromkeys(change.order) if name in self.messages])
        if change.state is not None and change.state != self.state:
            self.size += len(change.state) - len(self.state or b"")
            self.state, self.state_revision = change.state, self.revision
        if change.title is not None and self.record.title is None:
            self.record = replace(self.record, title=change.title)
        for note in change.notes:
            if self.notes.get(key := (note.kind, note.id)) != note:
                self._put(self.notes, key, note)
                self.revisions[key] = self.revision

    def _put(self, items: dict[K, Item], key: K, item: Item) -> None:
        stored = items.get(key)
        self.size += len(item.data) + (ITEM_BYTES if stored is None else -len(stored.data))
        items[key] = item

    def _reorder(self, order: list[str]) -> None:
        if order == list(self.messages):
            return
        removed = self.messages.keys() - set(order)
        self.size -= sum(ITEM_BYTES + len(self.messages[name].data) for name in removed)
        self.messages = {name: self.messages[name] for name in order}
        self.order_revision = self.revision
        self.drop_notes(lambda note: note.message_id in removed)

    def drop_notes(self, is_dropped: Callable[[ThreadNote], bool]) -> None:
        for key in [key for key, note in self.notes.items() if is_dropped(note)]:
            self.size -= ITEM_BYTES + len(self.notes.pop(key).data)

    def set_run(self, run: RunRecord) -> None:
        """Add or replace a run. If there are too many, the oldest one that has ended is removed."""
        if run.key.run_id not in self.runs:
            self.size += ITEM_BYTES
        self.runs[run.key.run_id] = run
        ended = (it for it in self.runs.values() if not it.is_open)
        if len(self.runs) > MAX_RUNS and (oldest := next(ended, None)) is not None:
            self.remove_run(oldest)

    def remove_run(self, run: RunRecord) -> None:
        del self.runs[run.key.run_id]
        self.size -= ITEM_BYTES

    def preventing_run(self, claim: Claim) -> RunRecord | None:
        """Return the run that prevents a claim, or None. The process orders its queued runs itself."""
        if self.record.active_run is not None:
            return self.runs[self.record.active_run]
        if claim.continues is None:
            return None
        newest = next((it for it in reversed(self.runs.values()) if it.status is not RunStatus.QUEUED), None)
        return None if newest is None or newest.key.run_id == claim.continues else newest

    def delta(self, since: str | None, *, messages: bool = True, notes: Sequence[str] = ()) -> ThreadDelta:
        revision = parse_revision(since, self.number)
        after = -1 if revision is None else revision
        items = self.messages if messages else {}
        return ThreadDelta(
            self.record,
            [message for name, message in items.items() if revision is None or self.revisions[name] > revision],
            list(items) if messages and self.order_revision > after else None,
            self.state if self.state_revision > after else None,
            make_revision(self.number, self.revision),
            self.notes_of(notes) if notes else (),
            revision is None,
        )

    def notes_of(self, kinds: Sequence[str]) -> Sequence[ThreadNote]:
        return [note for note in self.notes.values() if note.kind in kinds]

    def changed_notes(self, since: str | None) -> Sequence[ThreadNote]:
        revision = parse_revision(since, self.number)
        return [note for key, note in self.notes.items() if revision is None or self.revisions[key] > revision]

    def page(self, limit: int, before: str | None, last: str | None) -> Page[StoredMessage]:
        """Return the last messages, or those up to a message. Raises ``BadToken``."""
        newest: Iterable[StoredMessage] = reversed(self.messages.values())
        if (end := before or last) is not None:
            if end not in self.messages:
                raise BadToken("not a message of this thread")
            from_end = dropwhile(lambda message: message.id != end, newest)
            newest = from_end if before is None else islice(from_end, 1, None)
        items, size = list[StoredMessage](), 0
        for message in newest:
            if len(items) == limit or size >= READ_BYTES:
                return Page(items[::-1], items[-1].id)
            items.append(message)
            size += len(message.data)
        return Page(items[::-1])
