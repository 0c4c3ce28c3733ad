"""This process's word that its runs go on, and what it does about those whose process has gone silent.

Rule: a run is ended by whoever holds it. When its lease is over, one of the others takes it over, closes what is open
and writes RUN_ERROR, so every reader gets an end and the thread is free. Nothing is run twice.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import anyio.to_thread
from ag_ui.core import RunErrorEvent
from pydantic_core import from_json, to_json

from agui_container.engine.persistence.cluster import LEASE_SECONDS, Cluster, ReplicaCommand
from agui_container.engine.terminal_events import number_events
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
from agui_container.protocol.errors import ErrorCode, IllegalEvent
from agui_container.protocol.wire.envelope import Envelope

BEAT_SECONDS = 2.0
"""Between two words to the store."""

PAUSE_SECONDS = 1.0
"""Before a bus that does not answer is asked again."""

TIDY_SECONDS = 60.0
"""Between two looks for what is old."""

KEPT_SECONDS = 7 * 86_400.0
"""How long the events of a run that has ended can be read."""

LOST = "The server that ran this has gone; the run is over."

logger = logging.getLogger(__name__)


class LeasedRuns(Protocol):
    """The runs of this process."""

    def claimed_runs(self) -> Sequence[RunKey]:
        """Those that go on and that the store knows."""

    def progress(self) -> Sequence[RunProgress]:
        """How those stand."""

    def is_running(self, key: RunKey) -> bool:
        """Whether a run goes on here, or is being written down."""

    def cancel(self, key: RunKey) -> None:
        """End a run; harmless where it is not."""

    def reader_seen(self, key: RunKey, reader: str) -> None:
        """A run has a reader on another replica; harmless where it is not."""

    def end_lost(self, key: RunKey) -> None:
        """A run is another replica's now; harmless where it is not."""


class Leases:
    """The keeper of one process's leases."""

    def __init__(self, cluster: Cluster, here: LeasedRuns) -> None:
        self._cluster = cluster
        self._runs = here
        self._orphans: Sequence[RunKey] = ()
        self._reported: Mapping[RunKey, RunProgress] = {}
        self._renewed = self._since = -math.inf

    async def run(self) -> None:
        """Until it is cancelled: say that we live, end the runs of the dead, and hear what others want of us.

        Each in a task of its own, so that nothing that takes long keeps us from saying that we live.
        """
        async with asyncio.TaskGroup() as tasks:
            for work, pause in (
                (self._listen, PAUSE_SECONDS),
                (self.renew, BEAT_SECONDS),
                (self.report, BEAT_SECONDS),
                (self.reap, BEAT_SECONDS),
                (self.purge, TIDY_SECONDS),
            ):
                tasks.create_task(run_periodically(work, pause), name=work.__name__)

    async def renew(self) -> None:
        """Say that we live. What is ours no more ends here, and what is unwanted.

        Raises:
            StoreUnavailable: nobody has heard it.
        """
        cluster, here = self._cluster, self._runs
        claimed = here.claimed_runs()
        leases = await cluster.store.runs.renew(cluster.replica, cluster.lease())
        self._mark_reachable(cluster.clock.time())
        for lease in leases:
            if lease.is_cancel_requested:
                here.cancel(lease.key)
        ours = {lease.key for lease in leases}
        self._orphans = [key for key in ours if not here.is_running(key)]
        for key in claimed:
            if key not in ours:
                here.end_lost(key)

    async def report(self) -> None:
        """Note how our runs stand, where that has changed. Raises ``StoreUnavailable``, and then tells it again."""
        cluster, standings = self._cluster, {it.key: it for it in self._runs.progress()}
        news = [it for it in standings.values() if self._reported.get(it.key) != it]
        if news:
            await cluster.store.runs.report_progress(cluster.replica, news)
        self._reported = standings

    def _mark_reachable(self, now: float) -> None:
        """The store has answered; since when it does so without a break. A clock that is set back breaks it as well."""
        if not 0 <= now - self._renewed <= LEASE_SECONDS:
            self._since = now
        self._renewed = now

    async def reap(self) -> None:
        """End the runs that nobody holds. Raises ``StoreUnavailable``; what was not done is tried in the next round.

        Who has not reached the store for a while says nothing of others' silence: they may just not have, either.
        """
        cluster = self._cluster
        runs, now = cluster.store.runs, cluster.clock.time()
        for key in self._orphans:
            with log_failures(key):
                await self._drop(key)
        if not self._since + LEASE_SECONDS <= now <= self._renewed + LEASE_SECONDS:
            return
        for record in await runs.expired(now):
            if self._runs.is_running(record.key):
                continue  # ours, and the store is slow to hear that we live
            with log_failures(record.key):
                if await runs.take_over(record, cluster.replica, cluster.lease()):
                    await self._reap_run(record)

    async def purge(self) -> None:
        """Forget what is old, bit by bit. Raises ``StoreUnavailable``."""
        store, now = self._cluster.store, self._cluster.clock.time()
        while await store.runs.forget(now - KEPT_SECONDS, limit=1):
            pass
        await store.interrupts.expire(now)

    async def _drop(self, key: RunKey) -> None:
        """A run whose end could not be written when it came."""
        record = await self._cluster.store.runs.get(key)
        if record is not None and record.is_active and not self._runs.is_running(key):
            await self._reap_run(record)

    async def _reap_run(self, record: RunRecord) -> None:
        """Write what a lost run owes its readers."""
        logger.warning("run=<%s> | its replica <%s> has gone", record.key.run_id, record.replica)
        cluster, key = self._cluster, record.key
        envelopes: list[Envelope] = []
        while page := await cluster.store.runs.envelopes(key, len(envelopes)):
            envelopes += page
        kept = await cluster.store.threads.changes(key.thread)
        found = await anyio.to_thread.run_sync(read_events, key, [each.data for each in envelopes], kept)
        last = number_events(
            key.run_id,
            len(envelopes),
            [*(found.closers if found else ()), RunErrorEvent(message=LOST, code=ErrorCode.RUN_LOST)],
        )
        now = cluster.clock.time()
        pending = [goal for goal in (kept.goals if kept else None) or () if goal.status is GoalStatus.PENDING]
        for goal in pending:
            await cluster.store.goals.conclude(RunKey(*key.thread, goal.run_id), goal.index, GoalStatus.FAILED, now)
        turn = ThreadStatus.GOALS_FAILED if pending else ThreadStatus.USER_TURN
        await cluster.store.runs.finish(key, cluster.replica, last, lost_run_ending(record, now, found, turn))
        await cluster.publish(key, last)

    async def _listen(self) -> None:
        """Raises ``BusUnavailable``."""
        async for command in self._cluster.bus.commands(self._cluster.replica):
            self._handle_command(command)

    def _handle_command(self, command: bytes) -> None:
        obey: Mapping[ReplicaCommand, Callable[..., None]] = {
            ReplicaCommand.CANCEL: self._runs.cancel,
            ReplicaCommand.READER_PRESENT: self._runs.reader_seen,
        }
        try:
            told, owner, thread_id, run_id, *more = from_json(command)
            obey[ReplicaCommand(told)](RunKey(owner, thread_id, run_id), *more)
        except (TypeError, ValueError):
            logger.warning("what another replica says cannot be read")


async def run_periodically(work: Callable[[], Awaitable[None]], pause: float) -> None:
    """Do this until it is cancelled, whatever it raises."""
    while True:
        try:
            await work()
        except (StoreUnavailable, BusUnavailable) as error:
            logger.warning("what replicas owe each other has to wait: %s", error)
        except Exception:
            logger.exception("what replicas owe each other could not be done")
        await asyncio.sleep(pause)


@contextmanager
def log_failures(key: RunKey) -> Iterator[None]:
    """One run that cannot be ended does not keep the others waiting. Raises ``StoreUnavailable``."""
    try:
        yield
    except LeaseLost as error:
        logger.warning("run=<%s> | somebody else ends it: %s", key.run_id, error)
    except StoreUnavailable:
        raise
    except Exception:
        logger.exception("run=<%s> | it cannot be ended", key.run_id)


def read_events(key: RunKey, events: list[bytes], kept: ThreadDelta | None) -> RecoveredRun | None:
    """What a run's events say; None where they cannot be read, because its end must not depend on it."""
    messages = [message.data for message in kept.messages] if kept else []
    try:
        return recover_run(events, messages, kept.state if kept else None, LOST)
    except (IllegalEvent, ValueError):
        logger.exception("run=<%s> | its events cannot be read; it ends without what they left", key.run_id)
        return None


def lost_run_ending(record: RunRecord, now: float, found: RecoveredRun | None, turn: ThreadStatus) -> Ending:
    """How it ended, and what it left to its thread."""
    change = Change()
    if found is not None:
        messages = [StoredMessage(message.id, dump_message(message), record.key.run_id) for message in found.messages]
        change = Change(messages, found.order, found.state, found.title)
    error = to_json({"code": ErrorCode.RUN_LOST, "message": LOST})
    return Ending(RunStatus.ERROR, now, turn, record.usage, error, change)
