"""Renewal of this process's leases, and the end of runs whose process no longer renews its own.

Rule: only the replica that has the lease ends a run. When the lease has expired, exactly one other replica takes over
the run, closes its open messages and calls, and writes RUN_ERROR. So every reader gets a terminal event and the thread
is free again. No run is executed twice.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from ag_ui.core import BaseEvent, RunErrorEvent
from pydantic_core import from_json, to_json

from agui_container.engine.persistence.cluster import LEASE_SECONDS, Cluster, ReplicaCommand
from agui_container.engine.persistence.recorder import NOT_STORED
from agui_container.engine.terminal_events import number_events, start_event
from agui_container.ports.bus import BusUnavailable
from agui_container.ports.records import (
    Change,
    Ending,
    GoalStatus,
    RunKey,
    RunProgress,
    RunRecord,
    RunStatus,
    StoredMessage,
    ThreadDelta,
    ThreadStatus,
)
from agui_container.ports.store import LeaseLost, StoreUnavailable
from agui_container.protocol.conversation.merge import dump_message
from agui_container.protocol.conversation.recovery import RecoveredRun, recover_run
from agui_container.protocol.errors import AppError, ErrorCode, IllegalEvent
from agui_container.protocol.wire.envelope import Envelope
from agui_container.runtime.log_values import format_fields
from agui_container.runtime.offload import offload

RENEW_SECONDS = 2.0
"""Pause between two renewals, reports and searches for expired leases."""

BUS_RETRY_SECONDS = 1.0
"""Pause before listening to the bus again after it has failed."""

PURGE_SECONDS = 60.0
"""Pause between two removals of old data."""

RETENTION_SECONDS = 7 * 86_400.0
"""Time that the events of an ended run can be read from the store."""

LOST = AppError(ErrorCode.RUN_LOST, "The server that ran this run has stopped, so the run was ended.")

logger = logging.getLogger(__name__)


class LeasedRuns(Protocol):
    """The runs of this process, as ``Leases`` needs them."""

    def claimed_runs(self) -> Sequence[RunKey]:
        """Return the keys of the open runs that are claimed in the store."""

    def progress(self, now: float) -> Sequence[RunProgress]:
        """Return the progress of the open runs that are claimed in the store."""

    def is_running(self, key: RunKey) -> bool:
        """Return True if a run is open in this process or its end is not stored yet."""

    def cancel(self, key: RunKey) -> None:
        """Cancel a run. Does nothing if it is not in this process."""

    def end_lost(self, key: RunKey) -> None:
        """End a run whose lease another replica has. Does nothing if the run is not in this process."""

    def end_stored(self, key: RunKey) -> None:
        """Record that the store has the end of a run, so that late readers read it there.

        Does nothing if the run is not in this process.
        """


class Leases:
    """The leases of one process.

    Args:
        cluster: the store and the bus.
        runs: the runs of this process.
        on_reader: called for a reader on another replica, with the run's key and the reader's id.
    """

    def __init__(self, cluster: Cluster, runs: LeasedRuns, on_reader: Callable[[RunKey, str], None]) -> None:
        self._cluster = cluster
        self._runs = runs
        self._on_reader = on_reader
        self._orphans: Sequence[RunKey] = ()
        self._reported: Mapping[RunKey, RunProgress] = {}
        self._last_renewal = self._reachable_since = -math.inf

    async def run(self) -> None:
        """Renew, report, reap, purge and listen for commands until cancelled.

        Each job has its own task, so that a slow one does not delay the renewal.
        """
        async with asyncio.TaskGroup() as tasks:
            for job, pause in (
                (self._listen, BUS_RETRY_SECONDS),
                (self.renew, RENEW_SECONDS),
                (self.report, RENEW_SECONDS),
                (self.reap, RENEW_SECONDS),
                (self.purge, PURGE_SECONDS),
            ):
                tasks.create_task(run_periodically(job, pause), name=job.__name__)

    async def renew(self) -> None:
        """Renew the leases of this replica. End local runs whose lease was lost or whose cancellation was requested.

        Raises:
            StoreUnavailable: the leases may not be renewed.
        """
        cluster, runs = self._cluster, self._runs
        claimed = runs.claimed_runs()
        leases = await cluster.store.runs.renew(cluster.replica, cluster.lease())
        self._mark_reachable(cluster.clock.time())
        for lease in leases:
            if lease.is_cancel_requested:
                runs.cancel(lease.key)
        leased = {lease.key for lease in leases}
        self._orphans = [key for key in leased if not runs.is_running(key)]
        for key in claimed:
            if key not in leased:
                runs.end_lost(key)

    async def report(self) -> None:
        """Store the progress of this replica's runs, where it has changed.

        Raises:
            StoreUnavailable: the next call stores it.
        """
        cluster = self._cluster
        progress = {it.key: it for it in self._runs.progress(cluster.clock.time())}
        changed = [it for it in progress.values() if self._reported.get(it.key) != it]
        if changed:
            await cluster.store.runs.report_progress(cluster.replica, changed)
        self._reported = progress

    def _mark_reachable(self, now: float) -> None:
        """Record contact with the store. A gap of more than a lease, or a clock that was set back, restarts it."""
        if not 0 <= now - self._last_renewal <= LEASE_SECONDS:
            self._reachable_since = now
        self._last_renewal = now

    async def reap(self) -> None:
        """End this replica's orphaned runs and the runs whose lease has expired.

        A replica that has been in contact with the store for less than a lease does not take over runs, because the
        outage may have kept the others from renewing as well.

        Raises:
            StoreUnavailable: the next call ends the remaining runs.
        """
        cluster = self._cluster
        runs, now = cluster.store.runs, cluster.clock.time()
        for key in self._orphans:
            with log_failures(key):
                await self._reap_orphan(key)
        if not self._reachable_since + LEASE_SECONDS <= now <= self._last_renewal + LEASE_SECONDS:
            return
        for record in await runs.expired(now):
            if self._runs.is_running(record.key):
                continue  # this replica's own run, whose renewal is late
            with log_failures(record.key):
                if await runs.take_over(record, cluster.replica, cluster.lease()):
                    await self._reap_run(record, LOST)

    async def purge(self) -> None:
        """Remove old events and expired interrupts, one run at a time. Raises ``StoreUnavailable``."""
        store, now = self._cluster.store, self._cluster.clock.time()
        while await store.runs.forget(now - RETENTION_SECONDS, limit=1):
            pass
        await store.interrupts.expire(now)

    async def _reap_orphan(self, key: RunKey) -> None:
        """End a stored run of this replica whose end could not be stored when it happened, as its readers saw it."""
        record = await self._cluster.store.runs.get(key)
        if record is not None and record.is_active and not self._runs.is_running(key):
            await self._reap_run(record, NOT_STORED)
            self._runs.end_stored(key)

    async def _reap_run(self, record: RunRecord, error: AppError) -> None:
        """Store the closing events, RUN_ERROR and the end of a lost run."""
        facts = {"run": record.key.run_id, "replica": record.replica, "code": error.code}
        logger.warning("ending lost run %s", format_fields(facts))
        cluster, key = self._cluster, record.key
        envelopes: list[Envelope] = []
        while page := await cluster.store.runs.envelopes(key, len(envelopes)):
            envelopes += page
        thread = await cluster.store.threads.changes(key.thread)
        events = [each.data for each in envelopes]
        recovered = await offload("", recover, key, events, thread, error.message)
        now = cluster.clock.time()
        last: list[BaseEvent] = [] if envelopes else [start_event(key, None, int(now * 1000))]
        last += recovered.closers if recovered else ()
        last.append(RunErrorEvent(message=error.message, code=error.code))
        missing = number_events(key.run_id, len(envelopes), last)
        pending = [goal for goal in (thread.goals if thread else None) or () if goal.status is GoalStatus.PENDING]
        for goal in pending:
            await cluster.store.goals.conclude(RunKey(*key.thread, goal.run_id), goal.index, GoalStatus.FAILED, now)
        turn = ThreadStatus.GOALS_FAILED if pending else ThreadStatus.USER_TURN
        ending = lost_run_ending(record, now, recovered, turn, error)
        await cluster.store.runs.finish(key, cluster.replica, missing, ending)
        await cluster.publish(key, missing)

    async def _listen(self) -> None:
        """Handle the commands of other replicas until the bus ends. Raises ``BusUnavailable``."""
        async for command in self._cluster.bus.commands(self._cluster.replica):
            self._handle_command(command)

    def _handle_command(self, command: bytes) -> None:
        handlers: Mapping[ReplicaCommand, Callable[..., None]] = {
            ReplicaCommand.CANCEL: self._runs.cancel,
            ReplicaCommand.READER_PRESENT: self._on_reader,
        }
        try:
            name, owner, thread_id, run_id, *more = from_json(command)
            handlers[ReplicaCommand(name)](RunKey(owner, thread_id, run_id), *more)
        except (TypeError, ValueError) as error:
            logger.warning("replica command invalid %s", format_fields({"error": error}))


async def run_periodically(job: Callable[[], Awaitable[None]], pause: float) -> None:
    """Call a job every ``pause`` seconds until cancelled. Log its exceptions and continue."""
    while True:
        try:
            await job()
        except (StoreUnavailable, BusUnavailable) as error:
            logger.warning("lease job postponed %s", format_fields({"retry_in": f"{pause}s", "error": error}))
        except Exception:
            logger.exception("lease job failed %s", format_fields({"retry_in": f"{pause}s"}))
        await asyncio.sleep(pause)


@contextmanager
def log_failures(key: RunKey) -> Iterator[None]:
    """Log the failure to end one run, so that the others are ended as well. Raises ``StoreUnavailable``."""
    try:
        yield
    except LeaseLost as error:
        logger.warning("lost run is ended by another replica %s", format_fields({"run": key.run_id, "error": error}))
    except StoreUnavailable:
        raise
    except Exception:
        logger.exception("lost run not ended %s", format_fields({"run": key.run_id}))


def recover(key: RunKey, events: list[bytes], thread: ThreadDelta | None, failure: str) -> RecoveredRun | None:
    """Recover a run from its stored events. ``failure`` is the error message of unfinished subagents.

    Return None if they cannot be read, because the end of the run must not depend on them.
    """
    messages = [message.data for message in thread.messages] if thread else []
    try:
        return recover_run(events, messages, thread.state if thread else None, failure)
    except (IllegalEvent, ValueError):
        logger.exception(
            "lost run ended without its messages, stored events are invalid %s", format_fields({"run": key.run_id})
        )
        return None


def lost_run_ending(
    record: RunRecord, now: float, recovered: RecoveredRun | None, turn: ThreadStatus, error: AppError
) -> Ending:
    """Return the ending of a lost run, with the recovered messages and state for its thread."""
    change = Change()
    if recovered is not None:
        run_id = record.key.run_id
        messages = [StoredMessage(message.id, dump_message(message), run_id) for message in recovered.messages]
        change = Change(messages, recovered.order, recovered.state, recovered.title)
    facts = to_json({"code": error.code, "message": error.message})
    return Ending(RunStatus.ERROR, now, turn, record.usage, facts, change)
