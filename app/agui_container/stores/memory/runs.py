"""Runs and their envelopes in memory."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from agui_container.ports.records import (
    AlreadyExists,
    Change,
    Claim,
    Claimed,
    Ending,
    Lease,
    Page,
    RunKey,
    RunProgress,
    RunRecord,
    ThreadBusy,
    ThreadKey,
    ThreadRecord,
    ThreadStatus,
    claimed_run,
)
from agui_container.ports.store import PAGE, READ_BYTES, READ_EVENTS, LeaseLost
from agui_container.protocol.wire.envelope import Envelope
from agui_container.stores.memory.data import MemoryData, MemoryRun, MemoryThread
from agui_container.stores.page_tokens import make_page, parse_number, unpersisted


class MemoryRuns:
    """``RunStore`` in memory."""

    def __init__(self, data: MemoryData) -> None:
        self._data = data

    # --- writing ---

    async def claim(self, claim: Claim) -> Claimed | AlreadyExists | ThreadBusy:
        """Create the run as active, or return the run that prevents it."""
        existing = self._data.runs.get(claim.key)
        if existing is not None:
            return AlreadyExists(existing.record)
        key = claim.key.thread
        thread = self._data.threads.get(key)
        if thread is None:
            record = ThreadRecord(key, ThreadStatus.NOT_STARTED, claim.now, claim.now)
            thread = self._data.create_thread(record)
        elif thread.record.active_run is not None:
            return ThreadBusy(thread.runs[thread.record.active_run].record)
        elif (newest := newest_run(thread)) and claim.continues not in {None, newest.key.run_id}:
            return ThreadBusy(newest)
        active = claimed_run(claim)
        self._data.add_run(thread, MemoryRun(active, self._data.next_number()))
        thread.turn = thread.record.status
        status, run_id = ThreadStatus.AGENT_TURN, claim.key.run_id
        thread.touch(replace(thread.record, changed_at=claim.now, status=status, active_run=run_id))
        self._data.change(thread, Change())
        return Claimed(active)

    async def append(self, run: RunKey, replica: str, envelopes: Sequence[Envelope]) -> None:
        """Append envelopes. Raises ``LeaseLost``, or ``ValueError`` for a gap."""
        append_envelopes(self._owned_run(run, replica), envelopes)

    async def finish(self, run: RunKey, replica: str, envelopes: Sequence[Envelope], ending: Ending) -> None:
        """Store the last envelopes, the ending and the change of the thread. Raises as ``append``."""
        existing = self._data.runs.get(run)
        if existing is not None and is_repeated(existing.record, replica, ending):
            return
        owned, thread = self._owned_run(run, replica), self._data.threads[run.thread]
        append_envelopes(owned, envelopes)
        owned.record = replace(
            owned.record, status=ending.status, ended_at=ending.ended_at, usage=ending.usage, error=ending.error
        )
        status = ending.turn or thread.turn
        thread.touch(replace(thread.record, changed_at=ending.ended_at, status=status, active_run=None))
        self._data.change(thread, ending.change)
        self._data.evict_records()

    async def change(self, run: RunKey, replica: str, now: float, change: Change) -> None:
        """Change the thread of an active run. Raises ``LeaseLost``."""
        self._owned_run(run, replica)
        thread = self._data.threads[run.thread]
        thread.touch(replace(thread.record, changed_at=now))
        self._data.change(thread, change)

    def _owned_run(self, key: RunKey, replica: str) -> MemoryRun:
        run = self._data.runs.get(key)
        if run is None or not run.record.is_active or run.record.replica != replica:
            raise LeaseLost(key.run_id)
        return run

    # --- reading ---

    async def envelopes(self, run: RunKey, after: int) -> Sequence[Envelope]:
        """Return the next envelopes after ``seq`` ``after``: at most ``READ_EVENTS`` and about ``READ_BYTES``."""
        stored = self._data.runs.get(run)
        return [] if stored is None else envelopes_page(stored.envelopes, after)

    async def get(self, key: RunKey) -> RunRecord | None:
        """Return the record of a run, or None."""
        run = self._data.runs.get(key)
        return run.record if run else None

    async def latest(self, thread: ThreadKey) -> RunRecord | None:
        """Return the thread's newest run, or None. An active run is always the newest."""
        stored = self._data.threads.get(thread)
        return newest_run(stored) if stored else None

    async def find_by_run_id(self, owner: str, run_id: str) -> RunRecord | None:
        """Return an owner's newest run with this id, or None."""
        runs = reversed(self._data.runs.items())
        return next((run.record for key, run in runs if (key.owner, key.run_id) == (owner, run_id)), None)

    async def list(self, owner: str | None, *, active: bool = False, page: str | None = None) -> Page[RunRecord]:
        """List a page of runs, newest first. Raises ``BadToken``."""
        before_number = None if page is None else parse_number(page)
        matching = [
            run
            for key, run in reversed(self._data.runs.items())
            if owner in (None, key.owner)
            and (run.record.is_active or not active)
            and (before_number is None or run.number < before_number)
        ]
        items, next_token = make_page(matching, PAGE, lambda run: str(run.number))
        return Page([run.record for run in items], next_token)

    # --- leases ---

    async def renew(self, replica: str, until: float) -> Sequence[Lease]:
        """Extend the leases of the replica's active runs to ``until``, in Unix seconds. Return the leases."""
        own = [run for run in self._active_runs() if run.record.replica == replica]
        for run in own:
            run.record = replace(run.record, lease_until=until)
        return [Lease(run.record.key, run.is_cancel_requested) for run in own]

    async def report_progress(self, replica: str, progress: Sequence[RunProgress]) -> None:
        """Store the progress of the replica's active runs."""
        for report in progress:
            run = self._data.runs.get(report.key)
            if run is not None and run.record.is_active and run.record.replica == replica:
                run.record = replace(run.record, readers=report.readers, usage=report.usage)

    async def request_cancel(self, run: RunKey) -> bool:
        """Request the cancellation of a run. Return True if the run is active."""
        stored = self._data.runs.get(run)
        if stored is None or not stored.record.is_active:
            return False
        stored.is_cancel_requested = True
        return True

    async def expired(self, now: float) -> Sequence[RunRecord]:
        """List active runs whose lease has expired, oldest lease first."""
        expired = [run.record for run in self._active_runs() if run.record.lease_until <= now]
        return sorted(expired, key=lambda record: record.lease_until)[:PAGE]

    async def take_over(self, run: RunRecord, replica: str, until: float) -> bool:
        """Assign an expired run to this replica. Return False if its record differs from ``run``."""
        stored = self._data.runs.get(run.key)
        if stored is None or not stored.record.is_active:
            return False
        if (stored.record.replica, stored.record.lease_until) != (run.replica, run.lease_until):
            return False
        stored.record = replace(stored.record, replica=replica, lease_until=until)
        return True

    async def forget(self, ended_before: float, *, limit: int = PAGE) -> int:
        """Delete the envelopes of runs that ended before ``ended_before``. Return the number of runs."""
        old = self._data.ended_runs(ended_before, limit)
        for run in old:
            self._data.forget(run)
        return len(old)

    def _active_runs(self) -> Iterable[MemoryRun]:
        return (run for run in self._data.runs.values() if run.record.is_active)


def newest_run(thread: MemoryThread) -> RunRecord | None:
    """Return the newest run of a thread, or None."""
    return next((run.record for run in reversed(thread.runs.values())), None)


def append_envelopes(run: MemoryRun, envelopes: Sequence[Envelope]) -> None:
    """Append the envelopes that are not stored yet. Raises ``ValueError`` for a gap."""
    if new := unpersisted(run.record, envelopes):
        run.envelopes.extend(new)
        run.record = replace(run.record, last_seq=len(run.envelopes))


def is_repeated(record: RunRecord, replica: str, ending: Ending) -> bool:
    """True if the run already has this ending."""
    return (record.replica, record.status, record.ended_at) == (replica, ending.status, ending.ended_at)


def envelopes_page(envelopes: Sequence[Envelope], after: int) -> Sequence[Envelope]:
    """Return the envelopes after ``after``: at most ``READ_EVENTS``, and no more once they have ``READ_BYTES``."""
    size, end = 0, after
    while end < min(len(envelopes), after + READ_EVENTS) and size < READ_BYTES:
        size += len(envelopes[end].data)
        end += 1
    return envelopes[after:end]
