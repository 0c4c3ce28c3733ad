"""Where a caller's runs are: in this process, or in the store that all replicas share.

Rule: callers find their own runs only (design 5, promise 4). What is here is better known than what is stored.
"""

from collections.abc import AsyncIterator, Sequence

from app.core.errors import AppError, Code
from app.engine.archive import Archive, available
from app.engine.facts import Facts, recorded, summary
from app.engine.lifecycle import Lifecycle
from app.engine.run import Run
from app.ports import Caller, Clock
from app.ports.records import RunKey, RunRecord, ThreadKey


class Directory:
    """The runs that can be found from one process."""

    def __init__(self, lifecycle: Lifecycle, archive: Archive, clock: Clock) -> None:
        self._lifecycle = lifecycle
        self._archive = archive
        self._clock = clock

    def here(self, caller: Caller, thread_id: str | None, run_id: str | None) -> Run | None:
        """The run, where it is this process's."""
        if run_id is None and thread_id is not None:
            for run in self._lifecycle.line(caller.owner, thread_id):
                return run
            if self._archive.durable:
                return None  # the thread's latest run may be another replica's
        for run in self._lifecycle.runs(caller.owner):
            _, its_thread, its_id = run.key
            if thread_id in (None, its_thread) and (run_id == its_id if run_id is not None else thread_id is not None):
                return run
        return None

    async def kept(self, caller: Caller, thread_id: str | None, run_id: str | None) -> RunRecord:
        """The run as it is stored. Raises ``AppError`` RUN_NOT_FOUND."""
        record = None
        if self._archive.durable:
            with available():
                record = await self._stored(caller.owner, thread_id, run_id)
        if record is None or not record.kept:
            raise AppError(Code.RUN_NOT_FOUND, "There is no such run, or it is no longer kept.")
        return record

    async def _stored(self, owner: str, thread_id: str | None, run_id: str | None) -> RunRecord | None:
        runs = self._archive.store.runs
        if thread_id is None:
            return None if run_id is None else await runs.named(owner, run_id)
        thread = ThreadKey(owner, thread_id)
        return await (runs.latest(thread) if run_id is None else runs.get(RunKey(*thread, run_id)))

    async def find(self, caller: Caller, thread_id: str | None, run_id: str | None) -> Facts:
        """How a run stands: by its id, or the active, else the latest of a thread. Raises ``AppError`` as ``kept``."""
        now, run = self._clock.time(), self.here(caller, thread_id, run_id)
        return summary(run, now) if run else recorded(await self.kept(caller, thread_id, run_id), now)

    async def cancel(self, caller: Caller, thread_id: str | None, run_id: str | None) -> Facts:
        """End a run as cancelled, wherever it is, and say how it stands. Raises ``AppError`` RUN_NOT_FOUND."""
        run = self.here(caller, thread_id, run_id)
        if run is not None:
            asked = run.ledger is not None and not run.ledger.claimed and self._archive.durable
            run.cancel()
            if not asked or (record := await self._others(caller.owner, run)) is None:
                return summary(run, self._clock.time())
        else:
            record = await self.kept(caller, thread_id, run_id)
        if record.active:
            with available():
                await self._archive.cancel(record)
        return recorded(record, self._clock.time())

    async def _others(self, owner: str, run: Run) -> RunRecord | None:
        """The run that these ids mean elsewhere: a retry is a run here until the store has been asked."""
        with available():
            record = await self._stored(owner, run.ctx.thread_id, run.ctx.run_id)
        return None if record is None or record.replica == self._archive.replica else record

    async def list(self, caller: Caller) -> Sequence[Facts]:
        """The caller's live and recent runs, newest first.

        Where runs are stored these are all that are live on any replica, and the newest of the others.
        """
        now = self._clock.time()
        here = {run.key: summary(run, now) for run in self._lifecycle.runs(caller.owner)}
        if not self._archive.durable:
            return list(here.values())
        with available():
            others = {record.key: recorded(record, now) async for record in self._recent(caller.owner)}
        return sorted((others | here).values(), key=lambda facts: -float(str(facts["startedAt"])))

    async def _recent(self, owner: str) -> AsyncIterator[RunRecord]:
        runs, page = self._archive.store.runs, None
        for record in (await runs.list(owner)).items:
            yield record
        while True:
            found = await runs.list(owner, active=True, page=page)
            for record in found.items:
                yield record
            page = found.next
            if page is None:
                return
