"""What becomes of a run input: it is refused, another run is read in its place, or it starts.

Rule: everything is decided in the task of the run, whose request waits for the outcome. So a run can be found, read
and cancelled at any time.

| outcome | if | the client reads |
|---|---|---|
| join | this process has a run with these ids, and it is open or ``resume`` is absent | that run |
| continue | ``resume`` has other answers than the ended run with these ids | a run under a derived id |
| attach | the store has a run with these ids | that run |
| show | there is none, the input has no new messages, and the thread has some | the thread, as a run |
| start | otherwise, if the condition holds | the run |
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from ag_ui.core import RunAgentInput
from msgspec import structs

from agui_container.conversation.questions import JOURNAL
from agui_container.engine.finder import RunFinder
from agui_container.engine.inputs import (
    ANY_MESSAGES,
    answers_of,
    check_same_messages,
    fingerprint_of,
    has_other_answers,
    is_connect,
    merge_in_turn,
    with_derived_run_id,
)
from agui_container.engine.registry import OpenReaders, RunRegistry
from agui_container.engine.single_reader_runs import snapshot_events, snapshot_run
from agui_container.log_values import format_fields
from agui_container.ports import Agent, Caller
from agui_container.ports.records import Busy, Change, Claim, Exists, RunKey, RunRecord, ThreadDelta
from agui_container.ports.store import (
    FIRST_PAUSE,
    GIVE_UP_SECONDS,
    LONGEST_PAUSE,
    LeaseLost,
    StoreUnavailable,
    store_errors_as_app_errors,
    wait_for_store,
)
from agui_container.protocol.errors import AppError, ErrorCode, validation_error
from agui_container.replicas.remote_run import RemoteRun
from agui_container.run.cluster import LEASE_SECONDS, Cluster
from agui_container.run.endings import CancelReason, start_failed_error
from agui_container.run.life import RunPhase
from agui_container.run.notes import ENTRY, answers_in, entry_notes, expired_entries, questions_in
from agui_container.run.policy import NO_CONDITION, OnBusy
from agui_container.run.recorder import thread_deleted
from agui_container.run.run import Run, RunOrigin
from agui_container.run.subscription import Readable
from agui_container.threads import offload_if_large

logger = logging.getLogger(__name__)

CLOSING_READER_SECONDS = 0.25
"""Longest wait of a run on a busy thread for a connection that is being closed. A client that stops a run and sends the
next one immediately uses two connections, and the server may notice the second one first."""

AddRun = Callable[[RunKey, RunAgentInput, Caller, RunOrigin], Run]


class Admission:
    """Admits the runs of one process.

    Args:
        only_answers: True if the agent has nothing to do on a thread without messages.
        add_run: adds a run, which is admitted in its own task.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the engine hands over each part
        self,
        agent: Agent,
        cluster: Cluster,
        registry: RunRegistry,
        runs: RunFinder,
        readers: OpenReaders,
        add_run: AddRun,
        *,
        only_answers: bool,
    ) -> None:
        self._agent = agent
        self._cluster = cluster
        self._registry = registry
        self._runs = runs
        self._readers = readers
        self._add_run = add_run
        self._only_answers = only_answers

    def register(self, run_input: RunAgentInput, caller: Caller, origin: RunOrigin) -> Run:
        """Return the run of this process with these ids, or a new one. Raises as ``Engine.admit``."""
        key = RunKey(caller.owner, run_input.thread_id, run_input.run_id)
        known = self._registry.by_key.get(key)
        if known is None:
            return self._add_run(key, run_input, caller, origin)
        if known.log.has_ended and has_other_answers(run_input, known.fingerprint):
            return self._register_answer(run_input, caller, origin)
        return known

    def _register_answer(self, run_input: RunAgentInput, caller: Caller, origin: RunOrigin) -> Run:
        return self.register(with_derived_run_id(run_input), caller, structs.replace(origin, is_answer=True))

    async def admit(self, run: Run) -> bool:
        """Decide what becomes of a run, and begin it. Return True if the store has begun it, also if it has ended."""
        try:
            with store_errors_as_app_errors():
                if await self._begin_or_read_other(run):
                    return not run.life.is_dropped
        except AppError as error:
            run.refuse(error)
        except Exception:
            logger.exception("run could not begin %s", format_fields({"run": run.key.run_id}))
            run.refuse(start_failed_error())
        return await self._begin_ended(run)

    async def _begin_or_read_other(self, run: Run) -> bool:
        """Return False if another run is read, or if the run has ended before it began."""
        try:
            other = await self._find_other(run)
            if other is None:
                await self._check_tokens(run)
                await self._enter_queue(run)
                return await self._begin(run)
        except RunAlreadyStored as error:
            other = error.record
        await self._read_instead(run, other)
        return False

    # --- other runs -------------------------------------------------------------------------------------------------

    async def _find_other(self, run: Run) -> Readable | RunRecord | None:
        """Return the run that is read in place of this one.

        The claim finds a stored run as well. The store is read before it only if the run probably exists, or if the new
        run would cancel others or wait for others. A retry must do neither.
        """
        run_input, caller, store = run.pending_input, run.ctx.caller, self._cluster.store
        run.fingerprint = answers_of(run_input) + ANY_MESSAGES
        if not run.origin.is_answer:
            run.fingerprint = await offload_if_large(run.origin.size, fingerprint_of, run_input)
        may_show = is_connect(run_input)
        if not (may_show or run_input.resume or self._registry.open_queue(run.thread)):
            return None
        known = await store.run(run.key)
        if known is None:
            return await self._show(run, run_input) if may_show else None
        if not known.is_open and has_other_answers(run_input, known.fingerprint):
            return self._register_answer(run_input, caller, run.origin)
        return known

    async def _read_instead(self, run: Run, other: Readable | RunRecord) -> None:
        """Have another run read. If this one was cancelled meanwhile, the other one is meant."""
        if isinstance(other, Run | RunRecord):
            check_same_messages(run.fingerprint, other.fingerprint)
        if run.log.has_ended:
            self._registry.discard(run)
            if run.cancelled_by is CancelReason.CALLER:
                await self._cancel(other)
            return
        run.drop(self.stored(other) if isinstance(other, RunRecord) else other)

    async def _cancel(self, other: Readable | RunRecord) -> None:
        if isinstance(other, Run):
            other.cancel(CancelReason.CALLER)
        elif isinstance(other, RunRecord) and other.is_open:
            await self._cluster.cancel(other)

    def stored(self, record: RunRecord) -> RemoteRun:
        """Return a stored run to read. Raises ``AppError`` RUN_NOT_FOUND if its events are no longer kept."""
        store = self._cluster.durable
        if store is None or not record.has_events:
            raise AppError(ErrorCode.RUN_NOT_FOUND, "This run has ended and its events are no longer kept.")
        return RemoteRun(self._cluster, store, record)

    async def _show(self, run: Run, run_input: RunAgentInput) -> Readable | None:
        """Return the stored thread as a run, or None if it is empty and the agent may produce its first message."""
        thread = await self._cluster.store.thread(run.thread)
        if not self._only_answers and (thread is None or not thread.messages):
            return None
        interrupts = await self._runs.waiting(run.ctx.caller, run.key.thread_id)
        now_ms = int(self._cluster.clock.time() * 1000)
        events = snapshot_events(run_input, run.ctx.caller, thread, interrupts, now_ms)
        return snapshot_run(run.key, events, self._registry.flusher, self._registry.quota.log_memory)

    async def _check_tokens(self, run: Run) -> None:
        """Check the tokens of the owner's day. A retry joins its run, and one that only cancels questions may begin."""
        answers, most, store = run.pending_input.resume or (), self._cluster.day_tokens, self._cluster.store
        if not most or (answers and all(answer.status == "cancelled" for answer in answers)):
            return
        used = await store.tokens(run.key.owner)
        if used.tokens >= most:
            if (known := await store.run(run.key)) is not None:
                raise RunAlreadyStored(known)
            raise self._registry.quota.token_refusal(used, most, run.ctx.caller.identity)

    # --- the thread -------------------------------------------------------------------------------------------------

    async def _enter_queue(self, run: Run) -> None:
        """Put the run in the queue of its thread. Try again for ``CLOSING_READER_SECONDS``, while readers leave."""
        deadline = asyncio.get_running_loop().time() + CLOSING_READER_SECONDS
        while not run.log.has_ended:
            try:
                self._take_place(run)
            except AppError as error:
                is_late = bool(run.origin.condition.latest_run) or asyncio.get_running_loop().time() >= deadline
                if error.code is not ErrorCode.THREAD_BUSY or is_late:
                    raise
            else:
                return
            await self._readers.wait_for_close(deadline)

    def _take_place(self, run: Run) -> None:
        """Put the run in the queue. One that the claim will refuse for its condition must end no other run."""
        queue, on_busy = self._registry.open_queue(run.thread), run.origin.on_busy
        condition, to_cancel = run.origin.condition, list(queue)
        if queue and condition.is_empty:
            raise has_messages_error()
        if queue and condition.latest_run not in {None, queue[-1].key.run_id}:
            raise thread_busy()
        if queue and (on_busy is not OnBusy.INTERRUPT or condition.latest_run is not None):
            to_cancel = [other for other in queue if other.readers.is_abandoned()]
            if len(to_cancel) < len(queue) and (on_busy is OnBusy.REJECT or condition.latest_run is not None):
                raise thread_busy()
            run.predecessors = dict.fromkeys(other.key.run_id for other in queue if other not in to_cancel)
        if not run.log.has_ended:
            self._registry.enter_queue(run, to_cancel)

    # --- the claim --------------------------------------------------------------------------------------------------

    async def _begin(self, run: Run) -> bool:
        """Begin a run when its thread is free.

        A run that has ended meanwhile is begun as well if the thread is free or the store has it in the queue, so that
        its messages are kept. Otherwise the result is False.

        Raises:
            RunAlreadyStored: the run must not be executed again; its record can be read.
            AppError: THREAD_BUSY; VALIDATION_ERROR if the thread should be empty; THREAD_NOT_FOUND if it was deleted
                while the run waited.
        """
        if run.turn is not None and not run.is_enqueued:
            await self._enqueue(run)
        if run.turn is not None:
            await run.turn.wait()
        pause, deadline = FIRST_PAUSE, asyncio.get_running_loop().time() + GIVE_UP_SECONDS
        while run.input is not None:
            if (other := await self._try_to_begin(run)) is None:
                return True
            if not other.is_open:
                raise AppError(ErrorCode.THREAD_BUSY, "Another run has continued this thread.")
            if run.log.has_ended and not run.is_enqueued:
                break
            is_late = not run.is_enqueued and asyncio.get_running_loop().time() > deadline
            if is_late or (other.replica != self._cluster.replica and not await self._may_wait_for(run, other)):
                raise thread_busy()
            await self._cluster.thread_ends.wait(run.thread, pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return False

    async def _may_wait_for(self, run: Run, other: RunRecord) -> bool:
        """Wait in the store for a run of another replica, or cancel it and those that wait for it."""
        if run.log.has_ended:
            return True
        if run.origin.condition != NO_CONDITION:
            return False
        if run.origin.on_busy is OnBusy.INTERRUPT:
            await self._cluster.cancel_thread(run.thread)
        elif run.origin.on_busy is OnBusy.ENQUEUE:
            run.predecessors[other.key.run_id] = None
            if not run.is_enqueued:
                await self._enqueue(run)
        return run.origin.on_busy is not OnBusy.REJECT

    async def _enqueue(self, run: Run) -> None:
        async with self._cluster.enqueuing:
            existing = await self._cluster.store.enqueue(self._claim(run))
        if existing is not None:
            raise RunAlreadyStored(existing)
        run.is_enqueued = True
        if not run.log.has_ended:
            run.life.enter(RunPhase.WAITING)
            run.life.settle()

    async def _begin_ended(self, run: Run) -> bool:
        """Begin a run that has ended before its turn, so that its messages are kept and all replicas list it."""
        if run.input is None:
            return False
        try:
            return await wait_for_store(partial(self._begin, run), run.key.run_id)
        except RunAlreadyStored as error:
            await self._read_instead(run, error.record)
        except Exception as error:
            facts = format_fields({"run": run.key.run_id, "error": error})
            is_known = isinstance(error, AppError | StoreUnavailable)
            logger.warning("ended run not stored %s", facts, exc_info=not is_known)
        return False

    async def _try_to_begin(self, run: Run) -> RunRecord | None:
        """Return None if the store has begun the run, else the run that prevents it. Raises as ``_begin``."""
        run.is_claiming = True
        try:
            answer = await self._cluster.store.begin(self._claim(run), partial(self._merge, run))
        except LeaseLost:
            raise thread_deleted() from None
        finally:
            run.is_claiming = False
        if isinstance(answer, Busy):
            return answer.run
        if isinstance(answer, Exists):
            raise RunAlreadyStored(answer.run)
        if answer.run.is_cancel_requested:
            run.cancel()
        if not run.log.has_ended:
            task = run.begin(run.pending_input, answer.warnings, self._agent, self._registry.scheduler)
            self._registry.own_task(task)
        return None

    def _claim(self, run: Run) -> Claim:
        cluster = self._cluster
        return Claim(
            run.key,
            cluster.replica,
            LEASE_SECONDS,
            cluster.clock.time(),
            run.origin.condition.latest_run,
            run.fingerprint,
            is_queued=run.is_enqueued,
            notes=(JOURNAL, ENTRY),
        )

    async def _merge(self, run: Run, stored: ThreadDelta) -> Change:
        """Merge the input with the stored thread. Raises ``AppError`` if the thread should be empty and is not."""
        run_input, origin, turn = run.pending_input, run.origin, run.ctx.turn
        if origin.condition.is_empty and stored.messages:
            raise has_messages_error()
        merged = await merge_in_turn(origin.size, run_input, stored, run.predecessors)
        turn.notes = [note for note in stored.notes if note.kind == JOURNAL]
        turn.new_ids = {message.id for message in merged.change.messages}
        run.input = merged.run_input
        entries = [note for note in stored.notes if note.kind == ENTRY and note.until is None]
        notes = expired_entries(entries, stored.messages, merged.change) if entries else []
        if run_input.resume:
            last = stored.messages[-1].id if stored.messages else None
            answers = answers_in(run_input, questions_in(turn.notes, self._cluster.clock.time()), last)
            notes += entry_notes(run.key, "begin", answers)
        return structs.replace(merged.change, notes=notes) if notes else merged.change


class RunAlreadyStored(Exception):
    """The store already has a run with these ids: ``record``."""

    def __init__(self, record: RunRecord) -> None:
        super().__init__(record.key.run_id)
        self.record = record


def thread_busy() -> AppError:
    return AppError(ErrorCode.THREAD_BUSY, "Another run is active on this thread.")


def has_messages_error() -> AppError:
    return validation_error("The thread has messages, which those of the request would replace.")
