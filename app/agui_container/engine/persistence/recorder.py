"""The stored record of one run: its claim of the thread, its events and its end.

Rule: if the store outlives the process, an event is stored before readers see it. The events of a few milliseconds are
stored together. Recording never delays a run: the end of a run is handed over synchronously, and ``write`` stores it
independently of the agent. If the store stays unavailable, readers get no event that is not stored: the run ends with
STORE_UNAVAILABLE after the events that are. ``leases`` stores that end once the store is back.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto

from ag_ui.core import Interrupt, RunAgentInput, RunErrorEvent
from msgspec import Struct

from agui_container.engine.log.event_log import EventLog
from agui_container.engine.persistence.backlog import cut_unstored, early_end
from agui_container.engine.persistence.cluster import Cluster
from agui_container.engine.persistence.entries import Entry, answers_in, keep_entries
from agui_container.engine.persistence.merged_input import merge_in_turn, with_state
from agui_container.engine.policy import NO_CONDITION, OnBusy, ThreadCondition
from agui_container.ports.records import (
    AlreadyExists,
    Claim,
    Claimed,
    Ending,
    RunKey,
    RunRecord,
    StoreWarning,
)
from agui_container.ports.store import (
    FIRST_PAUSE,
    GIVE_UP_SECONDS,
    LONGEST_PAUSE,
    LeaseLost,
    StoreUnavailable,
    store_errors_as_app_errors,
)
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.wire.envelope import Envelope
from agui_container.runtime.futures import mark_retrieved
from agui_container.runtime.log_values import format_fields

WINDOW_SECONDS = 0.005
"""Time that an event waits for others, so that all are stored in one transaction."""

LEASE_TAKEN = AppError(ErrorCode.RUN_LOST, "Another server has taken over this run.")
NOT_STORED = AppError(ErrorCode.STORE_UNAVAILABLE, "This server could not store the rest of the run.")

OnLoss = Callable[[AppError], RunErrorEvent]
"""Ends a run that cannot be stored, or replaces its end, which readers have not seen. Returns the new end."""

logger = logging.getLogger(__name__)


class RunAlreadyStored(Exception):
    """The store already has a run with these ids: ``record``."""

    def __init__(self, record: RunRecord) -> None:
        super().__init__(record.key.run_id)
        self.record = record


class StoreState(Enum):
    """Position of a run in the store.

    A run begins as UNCLAIMED. The claim of its thread makes it CLAIMED, or DUPLICATE if the store already has a run
    with its ids. A run that ended before its claim becomes DUPLICATE, too, if the store turns out to have such a run.
    CLAIMED becomes STORED once the end is in a store that outlives this process. There are no other transitions.
    """

    UNCLAIMED = auto()
    CLAIMED = auto()
    DUPLICATE = auto()
    STORED = auto()


class WriteOutcome(Enum):
    """Result of one attempt to write."""

    CONTINUE = auto()
    DONE = auto()
    LEASE_LOST = auto()
    FAILED = auto()


class RunOrigin(Struct, frozen=True):
    """The request that a run comes from.

    Attributes:
        size: its bytes.
        condition: condition on the thread. It is checked with the claim.
        fingerprint: fingerprint of the messages of the input, or None if any input with its ids is a retry.
        questions: interrupts of the thread that ``resume`` may answer.
    """

    size: int = 0
    condition: ThreadCondition = NO_CONDITION
    fingerprint: bytes | None = None
    questions: Sequence[Interrupt] = ()


NO_ORIGIN = RunOrigin()


class RunRecorder:
    """Claims the thread of one run and stores the run.

    Args:
        cluster: the store and the bus.
        key: owner, thread and run.
        on_busy: the treatment of another replica's active run on the thread.
        predecessors: ids of the local runs that end before this one begins. Those of other replicas are added later.
        origin: the request.
        identity: whose turn a merge of large histories takes.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the engine hands over each part
        self,
        cluster: Cluster,
        key: RunKey,
        on_busy: OnBusy,
        predecessors: Iterable[str],
        origin: RunOrigin,
        identity: str,
    ) -> None:
        self.cluster = cluster
        self.key = key
        self.origin = origin
        self._identity = identity
        self._on_busy = on_busy
        self.predecessors = dict.fromkeys(predecessors)
        self._claiming: asyncio.Future[None] | None = None
        self.state = StoreState.UNCLAIMED
        self.warnings: Sequence[StoreWarning] = ()
        """Problems of the store that did not fail the run, known when the run begins."""
        self._unstored_input: RunAgentInput | None = None
        """The input of the run while its messages are not stored."""
        self._ending: Ending | None = None
        self._last_entries: Sequence[Entry] = ()
        self.backlog_error: AppError | None = None
        self._is_store_exact = True
        """True if the store is known to have exactly the events that readers may see."""
        self._is_dirty = False
        self._waiter: asyncio.Future[None] | None = None

    # --- claim ---

    async def begin(self, run_input: RunAgentInput) -> RunAgentInput:
        """Claim the thread. Return the input merged with the stored messages and state of the thread.

        Raises:
            RunAlreadyStored: the run must not be executed again; its record can be read.
            AppError: THREAD_BUSY, STORE_UNAVAILABLE; VALIDATION_ERROR if the thread should be empty.
        """
        self._unstored_input = run_input
        with store_errors_as_app_errors():
            await self._claim_uncancelled()
            return await self._merge_history(run_input)

    async def _claim_uncancelled(self) -> None:
        """Complete the claim even if the run is cancelled, because ``write`` must know its result to end the run."""
        self._claiming = asyncio.create_task(self._claim(), name=f"claim run {self.key.run_id}")
        self._claiming.add_done_callback(mark_retrieved)
        await asyncio.shield(self._claiming)
        self._claiming = None

    async def _claim(self) -> None:
        cluster, pause = self.cluster, FIRST_PAUSE
        deadline = asyncio.get_running_loop().time() + GIVE_UP_SECONDS
        while self._ending is None:
            now = cluster.clock.time()
            lease, latest_run = cluster.lease(), self.origin.condition.latest_run
            claim = Claim(self.key, cluster.replica, now, lease, latest_run, self.origin.fingerprint)
            result = await cluster.store.runs.claim(claim)
            if isinstance(result, Claimed):
                self.state = StoreState.CLAIMED
                return
            if isinstance(result, AlreadyExists):
                self.state = StoreState.DUPLICATE
                raise RunAlreadyStored(result.run)
            is_local = result.run.replica == cluster.replica
            if not result.run.is_active:
                raise AppError(ErrorCode.THREAD_BUSY, "Another run has continued this thread.")
            if asyncio.get_running_loop().time() > deadline or (self._on_busy is OnBusy.REJECT and not is_local):
                raise AppError(ErrorCode.THREAD_BUSY, "Another run is active on this thread.")
            if self._on_busy is OnBusy.INTERRUPT and not is_local:
                await cluster.cancel(result.run)
            elif not is_local:
                self.predecessors[result.run.key.run_id] = None
            await asyncio.sleep(pause)  # the end of this process's previous run may not be stored yet
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _merge_history(self, run_input: RunAgentInput) -> RunAgentInput:
        cluster, thread = self.cluster, self.key.thread
        stored = await cluster.store.threads.changes(thread)
        self.warnings = cluster.store.take_warnings(thread)
        if self.state is not StoreState.CLAIMED or stored is None:
            return with_state(run_input, None)
        if self.origin.condition.is_empty and stored.messages:
            self._unstored_input = None
            raise has_messages_error()
        merged = await merge_in_turn(self._identity, self.origin.size, run_input, stored, self.predecessors)
        if merged.change is not None:
            await cluster.store.runs.change(self.key, cluster.replica, cluster.clock.time(), merged.change)
        if self.origin.questions:
            last = stored.messages[-1].id if stored.messages else None
            answers = answers_in(run_input, self.origin.questions, last)
            await keep_entries(cluster.store.interrupts, self.key, "begin", answers)
        self._unstored_input = None
        return merged.run_input

    # --- writing ---

    def notify(self) -> None:
        """Wake ``write``, because there is something to store."""
        self._is_dirty = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def is_idle(self) -> bool:
        """True while ``write`` waits for something to store."""
        return self._waiter is not None and not self._waiter.done()

    async def _wait_dirty(self) -> None:
        """Wait until there is something to store. A future takes less memory per run than an ``asyncio.Event``."""
        if not self._is_dirty:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def end(self, ending: Ending, entries: Sequence[Entry] = ()) -> None:
        """Have the end of the run and its entries stored. The terminal event is already in the log."""
        self._ending, self._last_entries = ending, entries
        self.notify()

    def drop_backlog(self, error: AppError) -> None:
        """Store the end of the run with the next batch, because the server stops. Events beyond that batch are dropped.

        ``error`` replaces the terminal event if readers miss events that it depends on.
        """
        self.backlog_error = error

    async def write(self, log: EventLog, on_loss: OnLoss) -> None:
        """Store the events of the run and release them to readers, until its end is stored. The owner awaits this.

        If the end cannot be stored, or this is cancelled because the server stops, readers get an end all the same.
        """
        try:
            is_end_stored = await self._write_to_end(log, on_loss)
        except asyncio.CancelledError:
            await self._end_unstored(log, on_loss)
            raise
        if not is_end_stored:
            await self._end_unstored(log, on_loss)
        elif self.cluster.durable and self.state is StoreState.CLAIMED:
            self.state = StoreState.STORED

    async def _write_to_end(self, log: EventLog, on_loss: OnLoss) -> bool:
        """Store the run. Return False if its end is not stored."""
        if self._claiming is not None:
            await asyncio.wait([self._claiming])
        is_claimed = self.state is StoreState.CLAIMED
        outcome = WriteOutcome.CONTINUE if is_claimed else await self._record_unclaimed()
        while outcome is WriteOutcome.CONTINUE:
            await self._wait_dirty()
            if self._ending is None:
                await asyncio.sleep(WINDOW_SECONDS)
            elif self._unstored_input is not None:
                await self._record_input(self._unstored_input)
            outcome = await self._store_pending(log)
        if outcome is WriteOutcome.LEASE_LOST:
            end = on_loss(LEASE_TAKEN)
            if not await self._append_foreign(log):
                await cut_unstored(log, end)
        return outcome is not WriteOutcome.FAILED

    async def _end_unstored(self, log: EventLog, on_loss: OnLoss) -> None:
        """End the run for its readers after the events that are stored.

        A run without a claim has only its first and its last event, and is not in the store.
        """
        if self.state is not StoreState.CLAIMED:
            log.release_all()
            return
        if self.cluster.durable:
            await cut_unstored(log, on_loss(NOT_STORED))
        logger.warning("run end not stored %s", format_fields({"run": self.key.run_id, "thread": self.key.thread_id}))

    async def _record_unclaimed(self) -> WriteOutcome:
        """Look for a stored run with the same ids, because this run ended before its claim.

        Return LEASE_LOST if that run has ended, so that readers get its events, else FAILED.
        """
        try:
            stored = await self.cluster.store.runs.get(self.key) if self.cluster.durable else None
            if stored is not None:
                self.state = StoreState.DUPLICATE
                return WriteOutcome.FAILED if stored.is_active else WriteOutcome.LEASE_LOST
        except StoreUnavailable as error:
            logger.warning("store read failed %s", format_fields({"run": self.key.run_id, "error": error}))
        except Exception:
            logger.exception("store read failed %s", format_fields({"run": self.key.run_id}))
        return WriteOutcome.FAILED

    async def _record_input(self, run_input: RunAgentInput) -> None:
        """Store the messages of the client for a run that ended before they were stored."""
        try:
            await self._merge_history(run_input)
        except Exception:
            logger.warning("input messages not stored %s", format_fields({"run": self.key.run_id}), exc_info=True)
            self._unstored_input = None

    async def _append_foreign(self, log: EventLog) -> bool:
        """Replace the events that readers have not seen by the stored events of the replica that took over the run.

        Return False if they cannot be read, for example because the run was deleted with its thread.
        """
        runs, deadline = self.cluster.store.runs, asyncio.get_running_loop().time() + GIVE_UP_SECONDS
        foreign: list[Envelope] = []
        while asyncio.get_running_loop().time() < deadline:
            try:
                record = await runs.get(self.key)
                if record is None:
                    break
                while page := await runs.envelopes(self.key, log.watermark + len(foreign)):
                    foreign += page
                if not record.is_active:
                    log.rollback_unpublished()
                    log.append_foreign(foreign)
                    return True
            except StoreUnavailable as error:
                logger.warning("store read failed %s", format_fields({"run": self.key.run_id, "error": error}))
            except Exception:
                logger.exception("events of the other replica not readable %s", format_fields({"run": self.key.run_id}))
                break
            await asyncio.sleep(LONGEST_PAUSE)
        return False

    async def _store_pending(self, log: EventLog) -> WriteOutcome:
        """Store the events that are ready. Retry until the lease is lost or the store stays unavailable."""
        attempt, pause, deadline = 1, FIRST_PAUSE, asyncio.get_running_loop().time() + GIVE_UP_SECONDS
        while True:
            try:
                return await self._store_batch(log)
            except LeaseLost:
                logger.warning("lease lost %s", format_fields({"run": self.key.run_id}))
                return WriteOutcome.LEASE_LOST
            except StoreUnavailable as error:
                logger.warning(
                    "store write failed %s", format_fields({"run": self.key.run_id, "attempt": attempt, "error": error})
                )
                if asyncio.get_running_loop().time() > deadline:
                    return WriteOutcome.FAILED
            except Exception:
                logger.exception("store write failed %s", format_fields({"run": self.key.run_id, "attempt": attempt}))
                return WriteOutcome.FAILED
            await asyncio.sleep(pause)
            attempt, pause = attempt + 1, min(2 * pause, LONGEST_PAUSE)

    async def _store_batch(self, log: EventLog) -> WriteOutcome:
        self._is_dirty, ending, backlog_error = False, self._ending, self.backlog_error
        envelopes = log.unpersisted().envelopes() if self.cluster.durable else []
        runs, replica = self.cluster.store.runs, self.cluster.replica
        is_last = ending is not None and (not envelopes or envelopes[-1].seq == len(log))
        can_cut = not is_last and log.watermark > 0 and self._is_store_exact
        if ending is not None and backlog_error is not None and can_cut:
            await self._end_early(log, ending, backlog_error)
            return WriteOutcome.DONE
        if ending is not None and is_last:
            await keep_entries(self.cluster.store.interrupts, self.key, "end", self._last_entries)
            await runs.finish(self.key, replica, envelopes, ending)
        elif envelopes:
            self._is_store_exact = False
            await runs.append(self.key, replica, envelopes)
            self._is_store_exact = True
        if envelopes or is_last:
            log.advance(len(envelopes))
        await self.cluster.publish(self.key, envelopes)
        if not is_last and (ending is not None or log.watermark < len(log)):
            self.notify()  # the events that did not fit this batch must not wait for another event
        return WriteOutcome.DONE if is_last else WriteOutcome.CONTINUE

    async def _end_early(self, log: EventLog, ending: Ending, error: AppError) -> None:
        """Store the end directly after the events that readers have seen, and drop the events between."""
        envelopes, ending = await early_end(log, ending, error)
        await self.cluster.store.runs.finish(self.key, self.cluster.replica, envelopes, ending)
        logger.warning(
            "events dropped at shutdown %s", format_fields({"run": self.key.run_id, "count": len(log) - log.watermark})
        )
        log.rollback_unpublished()
        log.append_foreign(envelopes)
        await self.cluster.publish(self.key, envelopes)


def has_messages_error() -> AppError:
    """Return the error for a run whose thread must be empty and is not."""
    return AppError(ErrorCode.VALIDATION_ERROR, "messages: the thread has messages, which these would replace.")
