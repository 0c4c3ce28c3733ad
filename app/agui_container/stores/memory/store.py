"""The store in memory: runs, threads and notes.

Rule: no method awaits anything but a merge, whose run has the thread already. So each call is atomic on the event loop.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile, islice

from msgspec.structs import replace

from agui_container.ports.records import (
    Begun,
    Busy,
    Change,
    Claim,
    DayTokens,
    Ending,
    Exists,
    Lease,
    Page,
    RunKey,
    RunProgress,
    RunRecord,
    RunStatus,
    StoredMessage,
    StoreWarning,
    ThreadDelta,
    ThreadKey,
    ThreadNote,
    ThreadRecord,
    ThreadStatus,
    claimed_run,
)
from agui_container.ports.store import (
    PAGE,
    READ_BYTES,
    READ_EVENTS,
    BadToken,
    CannotFork,
    Delete,
    Fork,
    LeaseLost,
    Merge,
    Rename,
    RunQuery,
)
from agui_container.protocol.wire.envelope import Envelope
from agui_container.stores.memory.data import Bounds, MemoryData, MemoryRun, MemoryThread
from agui_container.stores.page_tokens import (
    make_last_token,
    make_page,
    make_revision,
    parse_last_token,
    parse_number,
    parse_revision,
    unpersisted,
)


class MemoryStore:
    """A ``Store`` whose data ends with the process.

    Args:
        bounds: limits of the data.
        now: returns the time in Unix seconds.
    """

    writes_turns = False

    def __init__(self, bounds: Bounds | None = None, now: Callable[[], float] = time.time) -> None:
        self._data = MemoryData(bounds or Bounds())
        self._now = now

    def take_warnings(self, thread: ThreadKey) -> Sequence[StoreWarning]:  # noqa: ARG002 - as in the port
        return ()

    async def open(self) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""

    # --- the life of a run ---

    async def enqueue(self, claim: Claim) -> RunRecord | None:
        if (existing := self._data.runs.get(claim.key)) is not None:
            return existing.record
        thread = self._data.threads.get(claim.key.thread) or self._create_thread(claim)
        self._add_run(thread, claim, RunStatus.QUEUED)
        return None

    async def begin(self, claim: Claim, merge: Merge) -> Begun | Exists | Busy:
        queued = self._data.runs.get(claim.key)
        if queued is None and claim.is_queued:
            raise LeaseLost(claim.key.run_id)
        if queued is not None and not claim.is_queued:
            return Exists(queued.record)
        thread = self._data.threads.get(claim.key.thread)
        if thread is not None and (other := preventing_run(thread, claim)) is not None:
            return Busy(other)
        if thread is None:
            thread = self._create_thread(claim)
        return await self._begin(claim, thread, queued or self._add_run(thread, claim, RunStatus.RUNNING), merge)

    async def _begin(self, claim: Claim, thread: MemoryThread, run: MemoryRun, merge: Merge) -> Begun:
        key, before = claim.key, run.record
        run.record = replace(before, status=RunStatus.RUNNING, lease_until=self._now() + claim.lease)
        thread.turn = thread.record.status
        thread.touch(replace(thread.record, status=ThreadStatus.AGENT_TURN, active_run=key.run_id))
        try:
            change = await merge(self._delta(thread, None, messages=True, notes=claim.notes))
        except BaseException:
            self._undo(claim, thread, run, before)
            raise
        if self._data.threads.get(thread.record.key) is not thread:
            raise LeaseLost(key.run_id)
        thread.touch(replace(thread.record, changed_at=claim.started_at))
        self._data.change(thread, change)
        return Begun(run.record)

    def _create_thread(self, claim: Claim) -> MemoryThread:
        at = claim.started_at
        return self._data.create_thread(ThreadRecord(claim.key.thread, ThreadStatus.NOT_STARTED, at, at))

    def _add_run(self, thread: MemoryThread, claim: Claim, status: RunStatus) -> MemoryRun:
        run = MemoryRun(claimed_run(claim, self._now(), status), self._data.next_number())
        self._data.add_run(thread, run)
        return run

    def _undo(self, claim: Claim, thread: MemoryThread, run: MemoryRun, before: RunRecord) -> None:
        """Undo a claim whose merge has failed."""
        if self._data.runs.get(claim.key) is not run:  # deleted meanwhile
            return
        run.record = before
        thread.touch(replace(thread.record, status=thread.turn, active_run=None))
        if not claim.is_queued:
            self._data.remove_run(thread, run)
            if thread.turn is ThreadStatus.NOT_STARTED and not thread.runs:
                self._data.remove(thread)

    async def append(self, run: RunKey, replica: str, envelopes: Sequence[Envelope]) -> None:
        append_envelopes(self._owned_run(run, replica), envelopes)

    async def finish(self, run: RunKey, replica: str, envelopes: Sequence[Envelope], ending: Ending) -> None:
        existing = self._data.runs.get(run)
        if existing is not None and is_repeated(existing.record, replica, ending):
            return
        owned, thread = self._owned_run(run, replica), self._data.threads[run.thread]
        append_envelopes(owned, envelopes)
        is_active = owned.record.status is RunStatus.RUNNING
        owned.record = replace(
            owned.record, status=ending.status, ended_at=ending.ended_at, usage=ending.usage, error=ending.error
        )
        record = replace(thread.record, changed_at=ending.ended_at)
        if is_active:
            record = replace(record, status=ending.turn or thread.turn, active_run=None)
        thread.touch(record)
        self._data.change(thread, ending.change)
        self._data.evict_records()
        if ending.tokens:
            self._data.tokens.of_day(self._now())[run.owner] += ending.tokens

    def _owned_run(self, key: RunKey, replica: str) -> MemoryRun:
        run = self._data.runs.get(key)
        if run is None or not run.record.is_open or run.record.replica != replica:
            raise LeaseLost(key.run_id)
        return run

    async def renew(self, replica: str, lease: float, progress: Sequence[RunProgress] = ()) -> Sequence[Lease]:
        reports = {report.key: report for report in progress}
        own = [run for run in self._open_runs() if run.record.replica == replica]
        until = self._now() + lease
        for run in own:
            run.record = replace(run.record, lease_until=until)
            if (report := reports.get(run.record.key)) is not None:
                run.record = replace(run.record, readers=report.readers, usage=report.usage)
        return [Lease(run.record.key, run.record.is_cancel_requested) for run in own]

    async def cancel(self, run: RunKey) -> bool:
        stored = self._data.runs.get(run)
        if stored is None or not stored.record.is_open:
            return False
        stored.record = replace(stored.record, is_cancel_requested=True)
        return True

    async def take_over(self, replica: str, lease: float) -> Sequence[RunRecord]:
        now = self._now()
        expired = [it for it in self._open_runs() if it.record.lease_until <= now and it.record.replica != replica]
        expired = sorted(expired, key=lambda run: run.record.lease_until)[:PAGE]
        before = [run.record for run in expired]
        for run in expired:
            run.record = replace(run.record, replica=replica, lease_until=now + lease)
        return before

    async def forget(self, ended_before: float, notes_until: float, *, limit: int = PAGE) -> int:
        self._data.notes.forget(notes_until)
        old = self._data.ended_runs(ended_before, limit)
        for run in old:
            self._data.forget(run)
        return len(old)

    def _open_runs(self) -> Iterator[MemoryRun]:
        return (run for run in self._data.runs.values() if run.record.is_open)

    # --- reading runs ---

    async def run(self, key: RunKey) -> RunRecord | None:
        run = self._data.runs.get(key)
        return run.record if run else None

    async def runs(self, query: RunQuery, *, limit: int = PAGE, page: str | None = None) -> Page[RunRecord]:
        below = None if page is None else parse_number(page)
        found = (
            run
            for run in reversed(self._data.runs.values())
            if matches(run.record, query) and (below is None or run.number < below)
        )
        items, next_token = make_page(list(islice(found, limit + 1)), limit, lambda run: str(run.number))
        return Page([run.record for run in items], next_token)

    async def envelopes(self, run: RunKey, after: int) -> Sequence[Envelope]:
        stored = self._data.runs.get(run)
        return [] if stored is None else envelopes_page(stored.envelopes, after)

    async def tokens(self, owner: str) -> DayTokens:
        now = self._now()
        return DayTokens(self._data.tokens.of_day(now)[owner], now)

    # --- threads ---

    async def thread(
        self, key: ThreadKey, since: str | None = None, *, messages: bool = True, notes: Sequence[str] = ()
    ) -> ThreadDelta | None:
        thread = self._data.threads.get(key)
        return None if thread is None else self._delta(thread, since, messages=messages, notes=notes)

    def _delta(self, thread: MemoryThread, since: str | None, *, messages: bool, notes: Sequence[str]) -> ThreadDelta:
        revision = parse_revision(since, thread.number)
        after = -1 if revision is None else revision
        items = thread.messages if messages else {}
        return ThreadDelta(
            thread.record,
            list(items.values()) if revision is None else changed_messages(thread, items, revision),
            list(items) if messages and thread.order_revision > after else None,
            thread.state if thread.state_revision > after else None,
            make_revision(thread.number, thread.revision),
            self._data.notes.read(thread.record.key, notes) if notes else (),
            revision is None,
        )

    async def messages(
        self, key: ThreadKey, *, limit: int = PAGE, before: str | None = None, last: str | None = None
    ) -> Page[StoredMessage] | None:
        thread = self._data.threads.get(key)
        if thread is None:
            return None
        newest: Iterable[StoredMessage] = reversed(thread.messages.values())
        if (end := before or last) is not None:
            if end not in thread.messages:
                raise BadToken("not a message of this thread")
            from_end = dropwhile(lambda message: message.id != end, newest)
            newest = from_end if before is None else islice(from_end, 1, None)
        return last_messages(newest, limit)

    async def threads(self, owner: str, *, limit: int = PAGE, page: str | None = None) -> Page[ThreadRecord]:
        below = None if page is None else parse_last_token(page)
        newest = self._data.threads_by_owner.last_first(owner, below)
        items, next_token = make_page(list(islice(newest, limit + 1)), limit, lambda it: make_last_token(*it[0]))
        return Page([thread.record for _, thread in items], next_token)

    async def edit(self, key: ThreadKey, edit: Rename | Fork | Delete) -> ThreadRecord | None:
        thread = self._data.threads.get(key)
        if thread is None:
            return None
        match edit:
            case Rename():
                thread.touch(replace(thread.record, title=edit.title))
            case Delete():
                self._data.remove(thread)
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
        existing = self._data.threads.get(key)
        if existing is not None:
            if existing.record.forked_from != origin:
                raise CannotFork("the new thread's id is taken", id_exists=True)
            return existing.record
        at, title, ids = fork.created_at, thread.record.title, list(thread.messages)
        history = [replace(thread.messages[name], run_id=None) for name in ids[: ids.index(message.id) + 1]]
        new = self._data.create_thread(ThreadRecord(key, fork.status, at, at, title, forked_from=origin))
        new.touch(new.record)
        self._data.change(new, Change(history, state=thread.state))
        return new.record

    def restore(self, record: ThreadRecord, change: Change) -> None:
        """Apply a change that was read from elsewhere. A thread that is not in memory is created from ``record``."""
        thread = self._data.threads.get(record.key) or self._data.create_thread(record)
        thread.touch(thread.record)
        self._data.change(thread, change)

    # --- notes ---

    async def notes(self, thread: ThreadKey, *kinds: str) -> Sequence[ThreadNote]:
        return self._data.notes.read(thread, kinds)

    async def put_notes(self, thread: ThreadKey, notes: Sequence[ThreadNote]) -> bool:
        exists = thread in self._data.threads
        if exists:
            self._data.notes.put(thread, notes)
        return exists

    async def settle_note(self, thread: ThreadKey, note: ThreadNote) -> bool:
        return await self._data.notes.settle_note(thread, note)


def preventing_run(thread: MemoryThread, claim: Claim) -> RunRecord | None:
    if thread.record.active_run is not None:
        return thread.runs[thread.record.active_run].record
    for name, run in thread.runs.items():
        if name == claim.key.run_id:
            break
        if run.record.status is RunStatus.QUEUED and run.record.replica != claim.replica:
            return run.record
    if claim.continues is None:
        return None
    begun = (it.record for it in reversed(thread.runs.values()) if it.record.status is not RunStatus.QUEUED)
    newest = next(begun, None)
    return None if newest is None or newest.key.run_id == claim.continues else newest


def matches(record: RunRecord, query: RunQuery) -> bool:
    """Return True if a run satisfies the conditions of a list."""
    key = record.key
    return (
        query.owner in (None, key.owner)
        and query.thread_id in (None, key.thread_id)
        and query.run_id in (None, key.run_id)
        and (record.is_open or not query.is_open)
    )


def append_envelopes(run: MemoryRun, envelopes: Sequence[Envelope]) -> None:
    """Append the envelopes that are not stored yet. Raises ``ValueError`` for a gap."""
    if new := unpersisted(run.record, envelopes):
        run.envelopes.extend(new)
        run.record = replace(run.record, last_seq=len(run.envelopes))


def is_repeated(record: RunRecord, replica: str, ending: Ending) -> bool:
    """Return True if the run already has this ending."""
    return (record.replica, record.status, record.ended_at) == (replica, ending.status, ending.ended_at)


def envelopes_page(envelopes: Sequence[Envelope], after: int) -> Sequence[Envelope]:
    """Return the envelopes after ``after``: at most ``READ_EVENTS``, and no more once they have ``READ_BYTES``."""
    size, end = 0, after
    while end < min(len(envelopes), after + READ_EVENTS) and size < READ_BYTES:
        size += len(envelopes[end].data)
        end += 1
    return envelopes[after:end]


def changed_messages(
    thread: MemoryThread, items: Mapping[str, StoredMessage], revision: int
) -> Sequence[StoredMessage]:
    return [message for name, message in items.items() if thread.revisions[name] > revision]


def last_messages(newest: Iterable[StoredMessage], limit: int) -> Page[StoredMessage]:
    """Return the first of these messages, which are sorted from the newest on, as a page of the thread."""
    items, size = list[StoredMessage](), 0
    for message in newest:
        if len(items) == limit or size >= READ_BYTES:
            return Page(items[::-1], items[-1].id)
        items.append(message)
        size += len(message.data)
    return Page(items[::-1])
