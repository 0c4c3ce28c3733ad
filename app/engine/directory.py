"""Where a caller's runs are: in this process, or in the store that all replicas share.

Rule: callers find their own runs only. What is here is better known than what is stored.
"""

from collections.abc import AsyncIterator, Iterator, Sequence

from ag_ui.core import Interrupt

from app.core.errors import AppError, Code
from app.engine.answering import asked_in
from app.engine.archive import Archive
from app.engine.elsewhere import RunElsewhere
from app.engine.facts import Facts, recorded, summary
from app.engine.lifecycle import Lifecycle
from app.engine.run import Run
from app.engine.subscription import Readable
from app.ports import Caller, Clock
from app.ports.records import RunKey, RunRecord, RunStatus, ThreadKey
from app.ports.store import PAGE, available


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

    async def stored(self, caller: Caller, thread_id: str | None, run_id: str | None) -> RunRecord:
        """The run as it is stored, also where its events are no longer kept. Raises ``AppError`` RUN_NOT_FOUND."""
        record = None
        if self._archive.durable:
            with available():
                record = await self._record(caller.owner, thread_id, run_id)
        if record is None:
            raise AppError(Code.RUN_NOT_FOUND, "There is no such run, or it is no longer kept.")
        return record

    async def _record(self, owner: str, thread_id: str | None, run_id: str | None) -> RunRecord | None:
        runs = self._archive.store.runs
        if thread_id is None:
            return None if run_id is None else await runs.named(owner, run_id)
        thread = ThreadKey(owner, thread_id)
        return await (runs.latest(thread) if run_id is None else runs.get(RunKey(*thread, run_id)))

    async def find(self, caller: Caller, thread_id: str | None, run_id: str | None) -> Facts:
        """How a run stands: by its id, or a thread's active or latest. Raises ``AppError`` as ``stored``."""
        now, found = self._clock.time(), await self.found(caller, thread_id, run_id)
        return summary(found, now) if isinstance(found, Run) else recorded(found, now)

    async def found(self, caller: Caller, thread_id: str | None, run_id: str | None) -> Run | RunRecord:
        """The run here, or its record. Raises ``AppError`` as ``stored``.

        A run here that only waits for its thread is not the thread's active one, as long as another is, and may be the
        retry of one that is stored.
        """
        run = self.here(caller, thread_id, run_id)
        if run is not None and not self._waits(run):
            return run
        try:
            record = await self.stored(caller, thread_id, run_id)
        except AppError:
            if run is None:
                raise
            return run
        return record if run is None or record.active or record.key == run.key else run

    async def known(self, caller: Caller, thread_id: str, run_id: str | None = None) -> Run | RunRecord | None:
        """As ``found``; None where there is no such run."""
        try:
            return await self.found(caller, thread_id, run_id)
        except AppError as error:
            if error.code is not Code.RUN_NOT_FOUND:
                raise
            return None

    async def asked(self, run: Run | RunRecord | None) -> Sequence[Interrupt]:
        """What a run has asked with its last event, as long as that is kept."""
        if run is None or run.status != RunStatus.INTERRUPTED or (isinstance(run, RunRecord) and not run.kept):
            return ()
        readable: Readable = run if isinstance(run, Run) else RunElsewhere(self._archive, run)
        subscription = readable.subscribe(len(readable.log) - 1)
        try:
            last = await anext(subscription)
        finally:
            subscription.close()
        return asked_in(last.data[-1])

    def _waits(self, run: Run) -> bool:
        return self._archive.durable and run.ledger is not None and not run.ledger.claimed and not run.log.has_ended

    async def cancel(self, caller: Caller, thread_id: str | None, run_id: str | None) -> Facts:
        """End a run as cancelled, wherever it is, and say how it stands. Raises ``AppError`` RUN_NOT_FOUND."""
        found = await self.found(caller, thread_id, run_id)
        if isinstance(found, Run):
            waits = self._waits(found)
            found.cancel()
            others = await self._others(caller.owner, found) if waits else None
            if others is None:
                return summary(found, self._clock.time())
            found = others
        if found.active:
            with available():
                await self._archive.cancel(found)
        return recorded(found, self._clock.time())

    async def _others(self, owner: str, run: Run) -> RunRecord | None:
        """The run that these ids mean elsewhere: a retry is a run here until the store has been asked."""
        with available():
            record = await self._record(owner, run.ctx.thread_id, run.ctx.run_id)
        return None if record is None or record.replica == self._archive.replica else record

    def drop(self, thread: ThreadKey) -> None:
        """The thread has been deleted: what has run on it here is found no more, and its ids may be used again."""
        self._lifecycle.drop(thread)

    async def list(self, caller: Caller) -> Sequence[Facts]:
        """The caller's live and recent runs, newest first.

        Where runs are stored these are all that are live on any replica, and the newest of the others.
        """
        now = self._clock.time()
        here = list(self._shown(caller.owner))
        if not self._archive.durable:
            return [summary(run, now) for run in here]
        with available():
            stored = {record.key: record async for record in self._recent(caller.owner)}
        ours = {run.key: run for run in here if run.key not in stored or not self._waits(run)}
        newest: Sequence[Run | RunRecord] = sorted((stored | ours).values(), key=lambda it: it.started_at, reverse=True)
        return [summary(it, now) if isinstance(it, Run) else recorded(it, now) for it in newest]

    def _shown(self, owner: str) -> Iterator[Run]:
        """Those of this process."""
        ended = 0
        for run in self._lifecycle.runs(owner):
            ended += run.log.has_ended
            if not run.log.has_ended or ended <= PAGE:
                yield run

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
