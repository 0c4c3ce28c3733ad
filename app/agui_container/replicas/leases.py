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

from ag_ui.core import BaseEvent, RunErrorEvent

from agui_container.conversation.message_json import dump_message
from agui_container.conversation.recovery import RecoveredRun, recover_run
from agui_container.log_values import format_fields
from agui_container.ports.records import (
    Change,
    Ending,
    RunKey,
    RunProgress,
    RunRecord,
    RunStatus,
    StoredMessage,
    ThreadDelta,
    ThreadStatus,
)
from agui_container.ports.store import DurableStore, LeaseLost, StoreUnavailable
from agui_container.protocol.envelope import Envelope
from agui_container.protocol.errors import AppError, ErrorCode, run_error
from agui_container.run.cluster import LEASE_SECONDS, Cluster
from agui_container.run.endings import error_json, number_events, start_event, sum_usage, usage_json
from agui_container.run.life import RunPhase
from agui_container.run.recorder import LEASE_TAKEN, NOT_STORED, thread_deleted
from agui_container.run.run import Run
from agui_container.threads import offload
from agui_core.expander import IllegalEvent

RENEW_SECONDS = 1.0
"""Pause between two renewals, reports and searches for expired leases. A cancel on another replica waits for it."""

PURGE_SECONDS = 60.0
"""Pause between two removals of old data."""

RETENTION_SECONDS = 7 * 86_400.0
"""Time that the events of an ended run can be read from the store."""

LOST = AppError(ErrorCode.RUN_LOST, "The server that ran this run has stopped, so the run was ended.")

logger = logging.getLogger(__name__)


class Leases:
    """Leases of the runs of this process. ``release`` is called with a run whose end the store has."""

    def __init__(
        self, cluster: Cluster, store: DurableStore, runs: Mapping[RunKey, Run], release: Callable[[Run], None]
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._runs = runs
        self._release = release
        self._orphans: Sequence[RunKey] = ()
        self._reported: Mapping[RunKey, RunProgress] = {}
        self._last_renewal = self._reachable_since = -math.inf

    async def run(self) -> None:
        """Run each job in a task of its own until cancelled, so that a slow one does not delay the renewal."""
        async with asyncio.TaskGroup() as tasks:
            for job, pause in (
                (self.renew, RENEW_SECONDS),
                (self.reap, RENEW_SECONDS),
                (self.purge, PURGE_SECONDS),
            ):
                tasks.create_task(run_periodically(job, pause), name=job.__name__)

    async def renew(self) -> None:
        """Renew the leases of this replica, report the runs that have changed, and learn which are read elsewhere.

        End local runs whose lease was lost or whose cancellation was requested.
        """
        cluster, runs = self._cluster, self._runs
        stored = [key for key, run in runs.items() if run.life.phase in {RunPhase.WAITING, RunPhase.RUNNING}]
        progress = {key: progress_of(runs[key]) for key in stored}
        changed = [it for it in progress.values() if self._reported.get(it.key) != it]
        leases = await self._store.renew(cluster.replica, LEASE_SECONDS, changed)
        self._reported = progress
        self._mark_reachable(cluster.clock.time())
        for key, lease in leases.items():
            if (run := runs.get(key)) is not None:
                run.readers.report_elsewhere(is_read=lease.is_read_elsewhere)
                if lease.is_cancel_requested:
                    run.cancel()
        self._orphans = [key for key in leases if not self._is_running(key)]
        for key in stored:
            if key not in leases and (run := runs.get(key)) is not None:
                run.fail(thread_deleted() if await self._store.run(key) is None else LEASE_TAKEN)

    def _is_running(self, key: RunKey) -> bool:
        """Return True if a run is open in this process, or its end is being stored."""
        run = self._runs.get(key)
        return run is not None and run.is_live

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
        cluster, now = self._cluster, self._cluster.clock.time()
        for key in self._orphans:
            with log_failures(key):
                await self._reap_orphan(key)
        if not self._reachable_since + LEASE_SECONDS <= now <= self._last_renewal + LEASE_SECONDS:
            return
        for record in await self._store.take_over(cluster.replica, LEASE_SECONDS):
            with log_failures(record.key):
                await self._reap_run(record, LOST)

    async def purge(self) -> None:
        """Remove old events and expired notes, one run at a time. Raises ``StoreUnavailable``."""
        now = self._cluster.clock.time()
        while await self._store.forget(now - RETENTION_SECONDS, now, limit=1):
            pass

    async def _reap_orphan(self, key: RunKey) -> None:
        """End a stored run of this replica whose end could not be stored when it happened, as its readers saw it."""
        record = await self._store.run(key)
        if record is not None and record.is_open and not self._is_running(key):
            await self._reap_run(record, NOT_STORED)
            if (run := self._runs.get(key)) is not None:
                run.life.enter(RunPhase.STORED)
                self._release(run)

    async def _reap_run(self, record: RunRecord, error: AppError) -> None:
        facts = {"run": record.key.run_id, "replica": record.replica, "code": error.code}
        logger.warning("ending lost run %s", format_fields(facts))
        cluster, key = self._cluster, record.key
        envelopes: list[Envelope] = []
        while page := await self._store.envelopes(key, len(envelopes)):
            envelopes += page
        thread = await self._store.thread(key.thread)
        events = [each.data for each in envelopes]
        recovered = await offload(recover, key, events, thread, error.message)
        now = cluster.clock.time()
        last: list[BaseEvent] = [] if envelopes else [start_event(key, None, int(now * 1000))]
        last += recovered.closers if recovered else ()
        last.append(end := run_error(error))
        missing = number_events(key.run_id, len(envelopes), last)
        ending = lost_run_ending(record, now, recovered, end)
        await cluster.finish(key, missing, ending)
        await cluster.publish(key, missing)


def progress_of(run: Run) -> RunProgress:
    return RunProgress(run.key, run.readers.count(), usage_json(sum_usage(run.ctx.usage)))


async def run_periodically(job: Callable[[], Awaitable[None]], pause: float) -> None:
    """Call a job every ``pause`` seconds until cancelled. Log its exceptions and continue."""
    while True:
        try:
            await job()
        except StoreUnavailable as error:
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
    """Return None if the events cannot be read, because the end of the run must not depend on them."""
    messages = [message.data for message in thread.messages] if thread else []
    try:
        return recover_run(events, messages, thread.state if thread else None, failure)
    except (IllegalEvent, ValueError):
        logger.exception(
            "lost run ended without its messages, stored events are invalid %s", format_fields({"run": key.run_id})
        )
        return None


def lost_run_ending(record: RunRecord, now: float, recovered: RecoveredRun | None, end: RunErrorEvent) -> Ending:
    change = Change()
    if recovered is not None:
        run_id = record.key.run_id
        messages = [StoredMessage(message.id, dump_message(message), run_id) for message in recovered.messages]
        change = Change(messages, recovered.order, recovered.state)
    turn = None if record.status is RunStatus.QUEUED else ThreadStatus.USER_TURN
    return Ending(RunStatus.ERROR, now, turn, record.usage, error_json(end), change)
