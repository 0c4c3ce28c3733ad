"""The stored record of one run: its events and its end.

Rule: if the store outlives the process, an event is stored before readers see it. The events of a few milliseconds are
stored together. Recording never delays a run: the end of a run is handed over synchronously, and ``write`` stores it
independently of the agent.

Rule: readers get an end in any case. If it cannot be stored, they get an error after the events that are stored.
``leases`` stores the end of such a run once the store is back.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from ag_ui.core import RunErrorEvent
from msgspec import structs

from agui_container.conversation.recovery import advance
from agui_container.log_values import format_fields
from agui_container.ports import store as store_port
from agui_container.ports.records import Ending, RunKey
from agui_container.ports.store import LeaseLost, StoreUnavailable, wait_for_store
from agui_container.protocol.envelope import Envelope
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.validator import RunSequence
from agui_container.run.cluster import Cluster
from agui_container.run.endings import TerminalEvent, number_events
from agui_container.run.event_log import EventLog
from agui_container.run.notes import ended_turn

WINDOW_SECONDS = 0.005
"""Time that an event waits for others, so that all are stored in one transaction."""

LEASE_TAKEN = AppError(ErrorCode.RUN_LOST, "Another server has taken over this run.")
NOT_STORED = AppError(ErrorCode.STORE_UNAVAILABLE, "This server could not store the rest of the run.")

OnLoss = Callable[[AppError], RunErrorEvent]
"""Ends a run that cannot be stored, or replaces its end, which readers have not seen. Returns the new end."""

logger = logging.getLogger(__name__)


class RunRecorder:
    def __init__(self, cluster: Cluster, key: RunKey) -> None:
        self.cluster = cluster
        self.key = key
        self.thread = key.thread
        self.is_stopping = False
        """True if the server stops, so that all events are stored at once with the end of the run."""
        self._ending: Ending | None = None
        self._ends_turn = False
        self._dirty = asyncio.Event()
        """Set while there is something to store."""
        self._late_release: asyncio.TimerHandle | None = None
        """Lets readers have the end of a run although its write takes too long."""

    def notify(self) -> None:
        self._dirty.set()

    @property
    def is_end_held(self) -> bool:
        """True if readers get the end of the run once it is written: the process may be frozen after they have it."""
        return self.cluster.store.writes_turns

    def end(self, ending: Ending, *, ends_turn: bool) -> None:
        """Have the end of the run stored. The terminal event is already in the log.

        ``ends_turn`` is True if answers that are repeated must not continue the turn.
        """
        self._ending, self._ends_turn = ending, ends_turn
        self.notify()

    async def write(self, log: EventLog, on_loss: OnLoss) -> bool:
        """Store the events of a run that has begun and release them to readers, until its end is stored.

        Return True if it is. Readers get an end even if this fails, or is cancelled because the server stops.
        """
        failure: AppError | None = NOT_STORED
        try:
            failure = await self._write_to_end(log)
        except Exception:
            logger.exception("run recording failed %s", format_fields({"run": self.key.run_id}))
        finally:
            if self._late_release is not None:
                self._late_release.cancel()
            await self._end_for_readers(log, failure, on_loss)
            self.cluster.thread_ends.notify(self.thread)
        return failure is None

    async def _end_for_readers(self, log: EventLog, failure: AppError | None, on_loss: OnLoss) -> None:
        if failure is None:
            if log.is_held:
                log.release()
            return
        logger.warning("run end not stored %s", format_fields({"run": self.key.run_id, "thread": self.key.thread_id}))
        if self.cluster.durable is None or log.is_complete:
            log.release()
        else:
            log.replace_unread(await self._events_without_record(log, on_loss(failure)))

    async def _write_to_end(self, log: EventLog) -> AppError | None:
        """Return the reason for which the end of the run is not stored, or None if it is."""
        while True:
            await self._dirty.wait()
            if log.is_held and self._late_release is None:
                self._late_release = asyncio.get_running_loop().call_later(store_port.GIVE_UP_SECONDS, log.release)
            if self._ending is None:
                await asyncio.sleep(WINDOW_SECONDS)
            try:
                if await wait_for_store(partial(self._store_batch, log), self.key.run_id):
                    return None
            except LeaseLost:
                return await reason_of_loss(self.cluster, self.key)
            except Exception as error:
                facts = format_fields({"run": self.key.run_id, "error": error})
                is_known = isinstance(error, StoreUnavailable)
                logger.warning("run not stored %s", facts, exc_info=not is_known)
                return NOT_STORED

    async def _store_batch(self, log: EventLog) -> bool:
        """Store the next events, and the end of the run if they are the last ones. Return True if the end is stored."""
        self._dirty.clear()
        ending, store = self._ending, self.cluster.durable
        envelopes = [] if store is None else log.unstored().envelopes()
        while self.is_stopping and envelopes and envelopes[-1].seq < len(log):
            envelopes += log.batch(envelopes[-1].seq, len(log)).envelopes()
        is_end = ending is not None and (not envelopes or envelopes[-1].seq == len(log))
        if ending is not None and is_end:
            await self.cluster.finish(self.key, envelopes, await self._with_ended_turn(ending))
        elif store is not None and envelopes:
            await store.append(self.key, self.cluster.replica, envelopes)
        log.advance(len(envelopes))
        if not is_end and (self._ending is not None or log.stored < len(log)):
            self.notify()  # the events that did not fit this batch must not wait for another event
        if envelopes:
            await self.cluster.publish(self.key, envelopes)
        return is_end

    async def _with_ended_turn(self, ending: Ending) -> Ending:
        if not self._ends_turn:
            return ending
        turn = await ended_turn(self.cluster.store, self.thread, self.cluster.clock.time())
        return structs.replace(ending, change=structs.replace(ending.change, notes=[*ending.change.notes, *turn]))

    async def _events_without_record(self, log: EventLog, error: RunErrorEvent) -> list[Envelope]:
        """Return the end of an ended run after the events that readers have seen. RUN_STARTED is one of them."""
        started = [] if log.watermark else log.batch(0, 1).envelopes()
        seen = log.watermark + len(started)
        try:
            return [*started, *await _closing_envelopes(log, error, error.message, seen)]
        except Exception:
            logger.exception("run could not be closed in order %s", format_fields({"run": log.run_id}))
            return [*started, *number_events(log.run_id, seen, [error])]


async def reason_of_loss(cluster: Cluster, key: RunKey) -> AppError:
    """Return the error of a run that this replica may no longer write."""
    logger.warning("lease lost %s", format_fields({"run": key.run_id}))
    try:
        return thread_deleted() if await cluster.store.run(key) is None else LEASE_TAKEN
    except Exception:
        logger.exception("store unavailable %s", format_fields({"run": key.run_id}))
        return LEASE_TAKEN


def thread_deleted() -> AppError:
    return AppError(ErrorCode.THREAD_NOT_FOUND, "The thread of this run was deleted.")


async def _closing_envelopes(log: EventLog, last: TerminalEvent, failure: str, after: int) -> list[Envelope]:
    """Return what closes the events that readers have seen, and then ``last``, numbered from ``after`` on.

    ``failure`` is the error message of unfinished subagents.
    """
    sequence, position = RunSequence(), 0
    while position < log.watermark:
        batch = log.batch(position, log.watermark)
        advance(sequence, batch.types, batch.data)
        position += len(batch.data)
        await asyncio.sleep(0)  # let other runs end
    return number_events(log.run_id, after, [*sequence.closers(failure), last])
