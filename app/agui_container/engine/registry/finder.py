"""Search for a caller's runs, in this process and in the store that all replicas share.

Rule: callers find their own runs only. A run of this process takes precedence over its stored record, which may be old.
"""

from collections.abc import AsyncIterator, Iterator, Sequence

from ag_ui.core import Interrupt, RunAgentInput

from agui_container.engine.outcome import CancelReason
from agui_container.engine.persistence.cluster import Cluster
from agui_container.engine.persistence.recorder import StoreState
from agui_container.engine.registry.registry import RunRegistry
from agui_container.engine.registry.repeated_inputs import (
    interrupts_of,
    is_answer,
    is_derived_run,
    with_derived_run_id,
)
from agui_container.engine.run.run import Run
from agui_container.engine.service import View
from agui_container.engine.threads.views import run_view, stored_run_view
from agui_container.ports import Caller, Clock, Responder
from agui_container.ports.records import RunKey, RunRecord, RunStatus, ThreadKey
from agui_container.ports.store import PAGE, store_errors_as_app_errors
from agui_container.protocol.errors import AppError, ErrorCode


class RunFinder:
    """Finds, lists and cancels the runs of this process and of the store."""

    def __init__(self, registry: RunRegistry, cluster: Cluster, clock: Clock, responder: Responder | None) -> None:
        self._registry = registry
        self._cluster = cluster
        self._clock = clock
        self._responder = responder

    def find_local(self, caller: Caller, thread_id: str | None, run_id: str | None) -> Run | None:
        """Return the run if it is in this process.

        Without ``run_id``, return the active run of the thread, or its latest one if nothing is stored.
        """
        if run_id is None:
            return None if thread_id is None else self._latest(ThreadKey(caller.owner, thread_id))
        if thread_id is None:
            return next(self._registry.newest_first(caller.owner, run_id=run_id), None)
        return self._registry.get(RunKey(caller.owner, thread_id, run_id))

    def _latest(self, thread: ThreadKey) -> Run | None:
        for run in self._registry.queue(*thread):
            return run
        if self._cluster.durable:
            return None  # the thread's latest run may be another replica's
        return next(self._registry.newest_first(*thread), None)

    async def find_stored(self, caller: Caller, thread_id: str | None, run_id: str | None) -> RunRecord:
        """Return the stored record of a run, also if its events were removed.

        Raises:
            AppError: RUN_NOT_FOUND, STORE_UNAVAILABLE.
        """
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
        """Return the view of a run, by its id, or of a thread's active or latest run. Raises as ``find_stored``."""
        now, run = self._clock.time(), await self.find_any(caller, thread_id, run_id)
        return run_view(run, now) if isinstance(run, Run) else stored_run_view(run, now)

    async def find_any(self, caller: Caller, thread_id: str | None, run_id: str | None) -> Run | RunRecord:
        """Return the run of this process, or its record. Raises as ``find_stored``.

        A local run that has not claimed its thread may be the retry of a stored run, and another replica's run may be
        the active one of the thread. So the store is read for it.
        """
        run = self.find_local(caller, thread_id, run_id)
        if run is not None and not self.awaits_claim(run):
            return run
        try:
            record = await self.find_stored(caller, thread_id, run_id)
        except AppError:
            if run is None:
                raise
            return run
        return record if run is None or record.is_active or record.key == run.key else run

    async def find_or_none(self, caller: Caller, thread_id: str, run_id: str | None = None) -> Run | RunRecord | None:
        """Return the run of this process, or its record, or None. Raises ``AppError`` STORE_UNAVAILABLE."""
        try:
            return await self.find_any(caller, thread_id, run_id)
        except AppError as error:
            if error.code is not ErrorCode.RUN_NOT_FOUND:
                raise
            return None

    async def waiting(self, caller: Caller, thread_id: str) -> Sequence[Interrupt]:
        """Return the unanswered interrupts of a thread: the responder's, or those of the thread's last run."""
        if self._responder is not None:
            return await self._responder.pending_interrupts(caller, thread_id)
        return await self.pending_interrupts(await self.find_or_none(caller, thread_id))

    async def pending_interrupts(self, run: Run | RunRecord | None) -> Sequence[Interrupt]:
        """Return the interrupts of a run that has ended with some, as long as its events are stored."""
        if run is None or run.status != RunStatus.INTERRUPTED:
            return ()
        if isinstance(run, Run):
            return interrupts_of(run.log.batch(len(run.log) - 1, len(run.log)).data[-1])
        with store_errors_as_app_errors():
            events = await self._cluster.store.runs.envelopes(run.key, run.last_seq - 1)
        return interrupts_of(events[-1].data) if events else ()

    async def find_continuation(
        self, run: Run | RunRecord | None, run_input: RunAgentInput, caller: Caller
    ) -> tuple[RunAgentInput, Sequence[Interrupt]] | None:
        """Return an input that continues a run under its ids as the input of the run that continues it.

        Its second part are the interrupts that it answers. Return None if ``resume`` answers neither this run nor a run
        that is derived from it.
        """
        if run is None or not run_input.resume:
            return None
        answers = with_derived_run_id(run_input)
        if is_answer(run_input, questions := await self.pending_interrupts(run)):
            return answers, questions
        latest = await self.find_or_none(caller, run_input.thread_id)
        if latest is None or not is_derived_run(latest.key.run_id, run_input.run_id):
            return None
        questions = await self.pending_interrupts(latest)
        is_retry = latest.key.run_id == answers.run_id
        return (answers, questions) if is_retry or is_answer(run_input, questions) else None

    def awaits_claim(self, run: Run) -> bool:
        """Return True if an open run has not claimed its thread in the store."""
        return self._cluster.durable and run.recorder.state is not StoreState.CLAIMED and not run.log.has_ended

    async def cancel(self, caller: Caller, thread_id: str | None, run_id: str | None) -> View:
        """Cancel a run on any replica. Return its view.

        Raises:
            AppError: RUN_NOT_FOUND, STORE_UNAVAILABLE.
        """
        run = await self.find_any(caller, thread_id, run_id)
        if isinstance(run, Run):
            awaits_claim = self.awaits_claim(run)
            run.cancel(CancelReason.CALLER)
            remote = await self._remote_run(caller.owner, run) if awaits_claim else None
            if remote is None:
                return run_view(run, self._clock.time())
            run = remote
        if run.is_active:
            with store_errors_as_app_errors():
                await self._cluster.cancel(run)
        return stored_run_view(run, self._clock.time())

    async def _remote_run(self, owner: str, run: Run) -> RunRecord | None:
        """Return another replica's run with the same ids. A retry looks like a new run before its claim."""
        with store_errors_as_app_errors():
            record = await self._record(owner, run.ctx.thread_id, run.ctx.run_id)
        return None if record is None or record.replica == self._cluster.replica else record

    def forget_thread(self, thread: ThreadKey) -> None:
        """Remove the runs of a deleted thread from this process. Their ids may be used again."""
        self._registry.forget_thread(thread)

    async def list(self, caller: Caller) -> Sequence[View]:
        """Return the views of the caller's active and recent runs, newest first.

        With a durable store the list has all active runs of all replicas and one page of the others.

        Raises:
            AppError: STORE_UNAVAILABLE.
        """
        now = self._clock.time()
        local = list(self._recent_runs(caller.owner))
        if not self._cluster.durable:
            return [run_view(run, now) for run in local]
        with store_errors_as_app_errors():
            stored = {record.key: record async for record in self._recent_records(caller.owner)}
        by_key = {run.key: run for run in local if run.key not in stored or not self.awaits_claim(run)}
        runs: Sequence[Run | RunRecord] = sorted((stored | by_key).values(), key=lambda it: it.started_at, reverse=True)
        return [run_view(it, now) if isinstance(it, Run) else stored_run_view(it, now) for it in runs]

    def _recent_runs(self, owner: str) -> Iterator[Run]:
        """Iterate the runs of this process: all open ones, and one page of ended ones."""
        ended = 0
        for run in self._registry.newest_first(owner):
            ended += run.log.has_ended
            if not run.log.has_ended or ended <= PAGE:
                yield run

    async def _recent_records(self, owner: str) -> AsyncIterator[RunRecord]:
        """Iterate one page of stored runs and all active ones. A run may come twice."""
        runs, page = self._cluster.store.runs, None
        for record in (await runs.list(owner)).items:
            yield record
        while True:
            active = await runs.list(owner, active=True, page=page)
            for record in active.items:
                yield record
            page = active.next
            if page is None:
                return
