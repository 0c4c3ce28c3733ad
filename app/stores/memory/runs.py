"""Runs in memory."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from app.core.wire import Envelope
from app.ports.conversation import Change, Ending, ThreadRecord, ThreadStatus
from app.ports.records import (
    Busy,
    Claim,
    Claimed,
    Known,
    Lease,
    Page,
    RunKey,
    RunRecord,
    RunStatus,
    Standing,
    ThreadKey,
)
from app.ports.store import PAGE, READ_BYTES, READ_EVENTS, LeaseLost
from app.stores.memory.contents import Contents, Run
from app.stores.pages import number_in, page_of, unstored


class MemoryRuns:
    """``Runs`` in memory."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    # --- writing ---

    async def claim(self, claim: Claim) -> Claimed | Known | Busy:
        """Make the run active, or say what is in the way."""
        known = self._contents.runs.get(claim.key)
        if known is not None:
            return Known(known.record)
        key = claim.key.thread
        thread = self._contents.threads.get(key)
        if thread is None:
            thread = self._contents.make(ThreadRecord(key, ThreadStatus.NOT_STARTED, claim.now, claim.now))
        elif thread.record.active_run is not None:
            return Busy(thread.runs[thread.record.active_run].record)
        record = RunRecord(claim.key, claim.replica, claim.until, RunStatus.RUNNING, claim.now)
        run = Run(record, self._contents.next_number())
        self._contents.runs[claim.key] = thread.runs[claim.key.run_id] = run
        thread.turn = thread.record.status
        status, run_id = ThreadStatus.AGENT_TURN, claim.key.run_id
        thread.touch(replace(thread.record, changed_at=claim.now, status=status, active_run=run_id))
        self._contents.change(thread, Change())
        return Claimed(record)

    async def append(self, run: RunKey, replica: str, envelopes: Sequence[Envelope]) -> None:
        """Store the envelopes that follow."""
        write(self._held(run, replica), envelopes)

    async def finish(self, run: RunKey, replica: str, envelopes: Sequence[Envelope], ending: Ending) -> None:
        """Store the last envelopes, how the run ended, and what it did to its thread."""
        known = self._contents.runs.get(run)
        if known is not None and is_repeated(known.record, replica, ending):
            return
        held, thread = self._held(run, replica), self._contents.threads[run.thread]
        write(held, envelopes)
        held.record = replace(
            held.record, status=ending.status, ended_at=ending.ended_at, usage=ending.usage, error=ending.error
        )
        status = ending.turn or thread.turn
        thread.touch(replace(thread.record, changed_at=ending.ended_at, status=status, active_run=None))
        self._contents.change(thread, ending.change)
        self._contents.ended(held)

    async def change(self, run: RunKey, replica: str, now: float, change: Change) -> None:
        """Change the thread of an active run."""
        self._held(run, replica)
        thread = self._contents.threads[run.thread]
        thread.touch(replace(thread.record, changed_at=now))
        self._contents.change(thread, change)

    def _held(self, key: RunKey, replica: str) -> Run:
        run = self._contents.runs.get(key)
        if run is None or not run.record.active or run.record.replica != replica:
            raise LeaseLost(key.run_id)
        return run

    # --- reading ---

    async def envelopes(self, run: RunKey, after: int) -> Sequence[Envelope]:
        """What comes after ``seq`` ``after``."""
        found = self._contents.runs.get(run)
        return [] if found is None else part(found.envelopes, after)

    async def get(self, key: RunKey) -> RunRecord | None:
        """The run with this key."""
        run = self._contents.runs.get(key)
        return run.record if run else None

    async def latest(self, thread: ThreadKey) -> RunRecord | None:
        """The thread's active run, else the one that was claimed last: which is the active one where there is one."""
        found = self._contents.threads.get(thread)
        return next((run.record for run in reversed(found.runs.values())), None) if found else None

    async def named(self, owner: str, run_id: str) -> RunRecord | None:
        """An owner's newest run with this id."""
        runs = reversed(self._contents.runs.items())
        return next((run.record for key, run in runs if (key.owner, key.run_id) == (owner, run_id)), None)

    async def list(self, owner: str | None, *, active: bool = False, page: str | None = None) -> Page[RunRecord]:
        """Runs, the newest first."""
        below = None if page is None else number_in(page)
        wanted = [
            run
            for key, run in reversed(self._contents.runs.items())
            if owner in (None, key.owner)
            and (run.record.active or not active)
            and (below is None or run.number < below)
        ]
        shown, rest = page_of(wanted, PAGE, lambda run: str(run.number))
        return Page([run.record for run in shown], rest)

    # --- leases ---

    async def renew(self, replica: str, until: float) -> Sequence[Lease]:
        """Hold all runs of the replica until then."""
        mine = [run for run in self._active() if run.record.replica == replica]
        for run in mine:
            run.record = replace(run.record, lease_until=until)
        return [Lease(run.record.key, run.unwanted) for run in mine]

    async def note(self, replica: str, standings: Sequence[Standing]) -> None:
        """Note how active runs of the replica stand."""
        for it in standings:
            run = self._contents.runs.get(it.key)
            if run is not None and run.record.active and run.record.replica == replica:
                run.record = replace(run.record, readers=it.readers, usage=it.usage)

    async def unwant(self, run: RunKey) -> bool:
        """Ask for the run's end."""
        found = self._contents.runs.get(run)
        if found is None or not found.record.active:
            return False
        found.unwanted = True
        return True

    async def expired(self, now: float) -> Sequence[RunRecord]:
        """Active runs whose lease is over."""
        late = [run.record for run in self._active() if run.record.lease_until <= now]
        return sorted(late, key=lambda record: record.lease_until)[:PAGE]

    async def take_over(self, run: RunRecord, replica: str, until: float) -> bool:
        """Make an expired run this replica's."""
        found = self._contents.runs.get(run.key)
        if found is None or not found.record.active:
            return False
        if (found.record.replica, found.record.lease_until) != (run.replica, run.lease_until):
            return False
        found.record = replace(found.record, replica=replica, lease_until=until)
        return True

    async def forget(self, ended_before: float, *, limit: int = PAGE) -> int:
        """Remove the envelopes of runs that ended before then."""
        old = self._contents.old(ended_before, limit)
        for run in old:
            self._contents.forget(run)
        return len(old)

    def _active(self) -> Iterable[Run]:
        return (run for run in self._contents.runs.values() if run.record.active)


def write(run: Run, envelopes: Sequence[Envelope]) -> None:
    """Store those that are not stored yet. Raises ``ValueError`` for a gap."""
    if new := unstored(run.record, envelopes):
        run.envelopes.extend(new)
        run.record = replace(run.record, last_seq=len(run.envelopes))


def is_repeated(record: RunRecord, replica: str, ending: Ending) -> bool:
    """Whether the run has this very end already."""
    return (record.replica, record.status, record.ended_at) == (replica, ending.status, ending.ended_at)


def part(envelopes: Sequence[Envelope], after: int) -> Sequence[Envelope]:
    """Those after ``after``: at most ``READ_EVENTS``, and none once there are ``READ_BYTES``."""
    size, end = 0, after
    while end < min(len(envelopes), after + READ_EVENTS) and size < READ_BYTES:
        size += len(envelopes[end].data)
        end += 1
    return envelopes[after:end]
