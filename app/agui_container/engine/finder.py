"""Search for a caller's runs, in this process and in the store that all replicas share.

Rule: callers find their own runs only. A run of this process takes precedence over its stored record, which may be old.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence

from ag_ui.core import Interrupt
from pydantic_core import from_json

from agui_container.engine.registry import RunRegistry
from agui_container.engine.views import View, run_view
from agui_container.ports import Caller
from agui_container.ports.records import RunKey, RunRecord, RunStatus, ThreadKey
from agui_container.ports.store import PAGE, DurableStore, RunQuery, store_errors_as_app_errors
from agui_container.protocol.errors import AppError, ErrorCode, suppress_errors
from agui_container.run.cluster import Cluster
from agui_container.run.endings import CancelReason
from agui_container.run.life import RunPhase
from agui_container.run.notes import open_questions
from agui_container.run.run import Run


class RunFinder:
    """Finds, lists and cancels the runs of this process and of the store."""

    def __init__(
        self,
        registry: RunRegistry,
        cluster: Cluster,
        cancel_questions: Callable[[Caller, str, Sequence[Interrupt]], Awaitable[None]],
    ) -> None:
        self._cancel_questions = cancel_questions
        self._registry = registry
        self._cluster = cluster
        self._clock = cluster.clock

    def find_local(self, caller: Caller, thread_id: str | None, run_id: str | None) -> Run | None:
        """Return the run if it is in this process.

        Without ``run_id``, return the active run of the thread, or its latest one if nothing is stored.
        """
        if run_id is None:
            return None if thread_id is None else self._latest(ThreadKey(caller.owner, thread_id))
        if thread_id is None:
            return next(self._registry.newest_first(caller.owner, run_id=run_id), None)
        return self._registry.by_key.get(RunKey(caller.owner, thread_id, run_id))

    def _latest(self, thread: ThreadKey) -> Run | None:
        for run in self._registry.open_queue(thread):
            return run
        if self._cluster.durable:
            return None  # the thread's latest run may be another replica's
        runs = self._registry.newest_first(*thread)
        return next((run for run in runs if run.life.phase is not RunPhase.ADMITTING), None)

    async def find_stored(self, caller: Caller, thread_id: str | None, run_id: str | None) -> RunRecord:
        """Find a run, also if its events were removed. Raises ``AppError`` RUN_NOT_FOUND, STORE_UNAVAILABLE."""
        record = None
        if (store := self._cluster.durable) is not None:
            with store_errors_as_app_errors():
                record = await _find_record(store, caller.owner, thread_id, run_id)
        if record is None:
            raise AppError(ErrorCode.RUN_NOT_FOUND, "There is no such run, or it is no longer kept.")
        return record

    async def find(self, caller: Caller, thread_id: str | None, run_id: str | None) -> View:
        """Return the view of a run, by its id, or of a thread's active or latest run. Raises as ``find_stored``."""
        return run_view(await self.find_any(caller, thread_id, run_id), self._clock.time())

    async def find_any(self, caller: Caller, thread_id: str | None, run_id: str | None) -> Run | RunRecord:
        """Return the run of this process, or its record. Raises as ``find_stored``.

        A local run that has not claimed its thread may be the retry of a stored run, and another replica's run may be
        the active one of the thread. So the store is read for it.
        """
        run = self.find_local(caller, thread_id, run_id)
        if run is not None and not self.is_unclaimed(run):
            return run
        try:
            record = await self.find_stored(caller, thread_id, run_id)
        except AppError:
            if run is None:
                raise
            return run
        own = self._registry.by_key.get(record.key) if record.replica == self._cluster.replica else None
        if own is not None:
            return own
        return record if run is None or record.is_open or record.key == run.key else run

    async def find_or_none(self, caller: Caller, thread_id: str, run_id: str | None = None) -> Run | RunRecord | None:
        with suppress_errors(ErrorCode.RUN_NOT_FOUND):
            return await self.find_any(caller, thread_id, run_id)
        return None

    async def waiting(self, caller: Caller, thread_id: str) -> Sequence[Interrupt]:
        with store_errors_as_app_errors():
            thread = ThreadKey(caller.owner, thread_id)
            return await open_questions(self._cluster.store, thread, self._clock.time())

    def is_unclaimed(self, run: Run) -> bool:
        """Return True if the store may have another run with these ids, or another active one on the thread."""
        return self._cluster.durable is not None and not run.life.has_begun

    async def cancel(self, caller: Caller, thread_id: str | None, run_id: str | None) -> View:
        """Cancel a run on any replica, also one that is being admitted. Return its view.

        A run that has ended with questions is cancelled by cancelling them.

        Raises:
            AppError: RUN_NOT_FOUND, STORE_UNAVAILABLE; as ``Engine.admit``, if questions are cancelled.
        """
        run = self._admitting(caller, thread_id, run_id) or await self.find_any(caller, thread_id, run_id)
        if (view := await self._cancel_waiting(caller, run)) is not None:
            return view
        if isinstance(run, Run):
            run.cancel(CancelReason.CALLER)
        elif run.is_open:
            with store_errors_as_app_errors():
                await self._cluster.cancel(run)
        return run_view(run, self._clock.time())

    def _admitting(self, caller: Caller, thread_id: str | None, run_id: str | None) -> Run | None:
        """Return the run that is being admitted on a thread without open runs, for a cancel without a run id."""
        if run_id is not None or thread_id is None or self._registry.open_queue(ThreadKey(caller.owner, thread_id)):
            return None
        runs = self._registry.newest_first(caller.owner, thread_id)
        return next((run for run in runs if run.life.phase is RunPhase.ADMITTING), None)

    async def _cancel_waiting(self, caller: Caller, run: Run | RunRecord) -> View | None:
        """Cancel the questions of a run that has ended with some. Return None if it has not, or if none waits."""
        if run.status != RunStatus.INTERRUPTED:
            return None
        asked = await self._interrupts_of(run)
        waiting = [each for each in await self.waiting(caller, run.key.thread_id) if each.id in asked]
        if not waiting:
            return None
        await self._cancel_questions(caller, run.key.thread_id, waiting)
        return {**run_view(run, self._clock.time()), "status": RunStatus.CANCELLED.value}

    async def _interrupts_of(self, run: Run | RunRecord) -> Collection[str]:
        """Return the ids of the interrupts with which a run has ended, as long as its events are stored."""
        events: Sequence[bytes] = ()
        if isinstance(run, Run):
            events = run.log.batch(len(run.log) - 1, len(run.log)).data
        elif (store := self._cluster.durable) is not None:
            with store_errors_as_app_errors():
                events = [envelope.data for envelope in await store.envelopes(run.key, run.last_seq - 1)]
        outcome = from_json(events[-1]).get("outcome") if events else None
        return {interrupt["id"] for interrupt in (outcome or {}).get("interrupts", ())}

    async def cancel_all(self, caller: Caller, thread_id: str) -> bool:
        """Cancel the open runs of a thread on all replicas, the waiting ones first. Return False if there are none."""
        thread = ThreadKey(caller.owner, thread_id)
        local = [run for run in self._registry.newest_first(*thread) if not run.log.has_ended]
        for run in local:
            run.cancel(CancelReason.CALLER)
        is_open = bool(local) or self._registry.is_storing(thread)
        return await self._cluster.cancel_thread(thread) or is_open

    def forget_thread(self, thread: ThreadKey) -> None:
        """Their ids may be used again."""
        self._registry.forget_thread(thread)

    async def list(self, caller: Caller) -> Sequence[View]:
        """Return the views of the caller's active and recent runs, newest first.

        With a durable store the list has all active runs of all replicas and one page of the others.

        Raises:
            AppError: STORE_UNAVAILABLE.
        """
        now = self._clock.time()
        local = list(self._recent_runs(caller.owner))
        if (store := self._cluster.durable) is None:
            return [run_view(run, now) for run in local]
        with store_errors_as_app_errors():
            stored = {record.key: record async for record in _recent_records(store, caller.owner)}
        by_key = {run.key: run for run in local if run.key not in stored or not self.is_unclaimed(run)}
        runs: Sequence[Run | RunRecord] = sorted((stored | by_key).values(), key=lambda it: it.started_at, reverse=True)
        return [run_view(it, now) for it in runs]

    def _recent_runs(self, owner: str) -> Iterator[Run]:
        ended = 0
        for run in self._registry.newest_first(owner):
            ended += run.log.has_ended
            if not run.log.has_ended or ended <= PAGE:
                yield run


async def _find_record(store: DurableStore, owner: str, thread_id: str | None, run_id: str | None) -> RunRecord | None:
    """Return a stored run. Without ``run_id``, return the active run of a thread, or else the newest one."""
    if thread_id is not None and run_id is not None:
        return await store.run(RunKey(owner, thread_id, run_id))
    if thread_id is None and run_id is None:
        return None
    if run_id is None:
        found = (await store.runs(RunQuery(owner, thread_id, is_open=True))).items
        if active := next((run for run in reversed(found) if run.status is RunStatus.RUNNING), None):
            return active
    found = (await store.runs(RunQuery(owner, thread_id, run_id), limit=1)).items
    return found[0] if found else None


async def _recent_records(store: DurableStore, owner: str) -> AsyncIterator[RunRecord]:
    """Iterate one page of stored runs and all active ones. A run may come twice."""
    page = None
    for record in (await store.runs(RunQuery(owner))).items:
        yield record
    while True:
        active = await store.runs(RunQuery(owner, is_open=True), page=page)
        for record in active.items:
            yield record
        page = active.next
        if page is None:
            return
