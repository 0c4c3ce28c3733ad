"""Where a caller's runs are: in this process, or in the store that all replicas share.

Rule: callers find their own runs only. What is here is better known than what is stored.
"""

from collections.abc import AsyncIterator, Iterator, Sequence

from ag_ui.core import Interrupt

from agui_container.engine.log.subscription import Readable
from agui_container.engine.persistence.cluster import Cluster
from agui_container.engine.persistence.remote_run import RemoteRun
from agui_container.engine.registry.interrupt_answers import interrupts_of
from agui_container.engine.registry.registry import RunRegistry
from agui_container.engine.run.run import Run
from agui_container.engine.threads.views import View, run_view, stored_run_view
from agui_container.ports import Caller, Clock
from agui_container.ports.records import RunKey, RunRecord, RunStatus, ThreadKey
from agui_container.ports.store import PAGE, store_errors_as_app_errors
from agui_container.protocol.errors import AppError, ErrorCode


class RunFinder:
    """The runs that can be found from one process."""

    def __init__(self, registry: RunRegistry, cluster: Cluster, clock: Clock) -> None:
        self._registry = registry
        self._cluster = cluster
        self._clock = clock

    def find_local(self, caller: Caller, thread_id: str | None, run_id: str | None) -> Run | None:
        """The run, where it is this process's."""
        if run_id is None and thread_id is not None:
            for run in self._registry.queue(caller.owner, thread_id):
                return run
            if self._cluster.durable:
                return None  # the thread's latest run may be another replica's
        for run in self._registry.runs(caller.owner):
            _, its_thread, its_id = run.key
            if thread_id in (None, its_thread) and (run_id == its_id if run_id is not None else thread_id is not None):
                return run
        return None

    async def find_stored(self, caller: Caller, thread_id: str | None, run_id: str | None) -> RunRecord:
        """The run as it is stored, also where its events are no longer kept. Raises ``AppError`` RUN_NOT_FOUND."""
        record = None
        if self._cluster.durable:
            with store_errors_as_app_errors():
                record = await self._record(caller.owner, thread_id, run_id)
        if record is None:
            raise AppError(ErrorCode.RUN_NOT_FOUND, "There is no such run, or it is no longer kept.")
        return record

    async def _record(self, owner: str, thread_id: str | None, run_id: str | None) -> RunRecord | None:
        runs = self._cluster.store.runs
        if thread_id is None:
            return None if run_id is None else await runs.find_by_run_id(owner, run_id)
        thread = ThreadKey(owner, thread_id)
        return await (runs.latest(thread) if run_id is None else runs.get(RunKey(*thread, run_id)))

    async def find(self, caller: Caller, thread_id: str | None, run_id: str | None) -> View:
        """How a run stands: by its id, or a thread's active or latest. Raises ``AppError`` as ``usage_json``."""
        now, found = self._clock.time(), await self.find_any(caller, thread_id, run_id)
        return run_view(found, now) if isinstance(found, Run) else stored_run_view(found, now)

    async def find_any(self, caller: Caller, thread_id: str | None, run_id: str | None) -> Run | RunRecord:
        """The run here, or its record. Raises ``AppError`` as ``usage_json``.

        A run here that only waits for its thread is not the thread's active one, as long as another is, and may be the
        retry of one that is stored.
        """
        run = self.find_local(caller, thread_id, run_id)
        if run is not None and not self._waits(run):
            return run
        try:
            record = await self.find_stored(caller, thread_id, run_id)
        except AppError:
            if run is None:
                raise
            return run
        return record if run is None or record.is_active or record.key == run.key else run

    async def find_or_none(self, caller: Caller, thread_id: str, run_id: str | None = None) -> Run | RunRecord | None:
        """As ``found``; None where there is no such run."""
        try:
            return await self.find_any(caller, thread_id, run_id)
        except AppError as error:
            if error.code is not ErrorCode.RUN_NOT_FOUND:
                raise
            return None

    async def pending_interrupts(self, run: Run | RunRecord | None) -> Sequence[Interrupt]:
        """What a run has asked with its last event, as long as that is kept."""
        if run is None or run.status != RunStatus.INTERRUPTED or (isinstance(run, RunRecord) and not run.kept):
            return ()
        readable: Readable = run if isinstance(run, Run) else RemoteRun(self._cluster, run)
        subscription = readable.subscribe(len(readable.log) - 1)
        try:
            last = await anext(subscription)
        finally:
            subscription.close()
        return interrupts_of(last.data[-1])

    def _waits(self, run: Run) -> bool:
        return (
            self._cluster.durable and run.recorder is not None and not run.recorder.is_claimed and not run.log.has_ended
        )

    async def cancel(self, caller: Caller, thread_id: str | None, run_id: str | None) -> View:
        """End a run as cancelled, wherever it is, and say how it stands. Raises ``AppError`` RUN_NOT_FOUND."""
        found = await self.find_any(caller, thread_id, run_id)
        if isinstance(found, Run):
            waits = self._waits(found)
            found.cancel()
            others = await self._remote_run(caller.owner, found) if waits else None
            if others is None:
                return run_view(found, self._clock.time())
            found = others
        if found.is_active:
            with store_errors_as_app_errors():
                await self._cluster.cancel(found)
        return stored_run_view(found, self._clock.time())

    async def _remote_run(self, owner: str, run: Run) -> RunRecord | None:
        """The run that these ids mean elsewhere: a retry is a run here until the store has been asked."""
        with store_errors_as_app_errors():
            record = await self._record(owner, run.ctx.thread_id, run.ctx.run_id)
        return None if record is None or record.replica == self._cluster.replica else record

    def forget_thread(self, thread: ThreadKey) -> None:
        """The thread has been deleted: what has run on it here is found no more, and its ids may be used again."""
        self._registry.forget_thread(thread)

    async def list(self, caller: Caller) -> Sequence[View]:
        """The caller's live and recent runs, newest first.

        Where runs are stored these are all that are live on any replica, and the newest of the others.
        """
        now = self._clock.time()
        here = list(self._local_views(caller.owner))
        if not self._cluster.durable:
            return [run_view(run, now) for run in here]
        with store_errors_as_app_errors():
            stored = {record.key: record async for record in self._stored_views(caller.owner)}
        ours = {run.key: run for run in here if run.key not in stored or not self._waits(run)}
        newest: Sequence[Run | RunRecord] = sorted((stored | ours).values(), key=lambda it: it.started_at, reverse=True)
        return [run_view(it, now) if isinstance(it, Run) else stored_run_view(it, now) for it in newest]

    def _local_views(self, owner: str) -> Iterator[Run]:
        """Those of this process."""
        ended = 0
        for run in self._registry.runs(owner):
            ended += run.log.has_ended
            if not run.log.has_ended or ended <= PAGE:
                yield run

    async def _stored_views(self, owner: str) -> AsyncIterator[RunRecord]:
        runs, page = self._cluster.store.runs, None
        for record in (await runs.list(owner)).items:
            yield record
        while True:
            found = await runs.list(owner, active=True, page=page)
            for record in found.items:
                yield record
            page = found.next
            if page is None:
                return
