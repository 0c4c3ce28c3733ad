"""This process's word that its runs go on, and what it does about those whose process has gone silent.

Rule: a run is ended by whoever holds it. When its lease is over, one of the others takes it over, closes what is open
and writes RUN_ERROR, so every reader gets an end and the thread is free. Nothing is run twice.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from itertools import count

import anyio.to_thread
from ag_ui.core import BaseEvent, RunErrorEvent
from pydantic_core import from_json, to_json

from app.core.encoder import encode
from app.core.errors import Code, IllegalEvent
from app.core.history import dumped
from app.core.order import kind_of
from app.core.recovery import Recovered, recovered
from app.core.wire import Envelope
from app.engine.archive import LEASE_SECONDS, Archive
from app.ports.bus import BusUnavailable
from app.ports.conversation import Change, Ending, GoalStatus, StoredMessage, ThreadStatus
from app.ports.records import RunKey, RunRecord, RunStatus
from app.ports.store import LeaseLost, StoreUnavailable

BEAT_SECONDS = 2.0
"""Between two words to the store."""

PAUSE_SECONDS = 1.0
"""Before a bus that does not answer is asked again."""

KEPT_SECONDS = 7 * 86_400.0
"""How long the events of a run that has ended can be read."""

LOST = "The server that ran this has gone; the run is over."

logger = logging.getLogger(__name__)


class Leases:
    """The keeper of one process's leases.

    Args:
        cancel: ends a run of this process; harmless for others.
        holds: whether a run goes on here, or is being written down.
    """

    def __init__(self, archive: Archive, cancel: Callable[[RunKey], None], holds: Callable[[RunKey], bool]) -> None:
        self._archive = archive
        self._cancel = cancel
        self._holds = holds
        self._heard = -math.inf

    async def keep(self) -> None:
        """Until it is cancelled: say that we live, end the runs of the dead, and hear what others want of us."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listen(), name="listen to other replicas")
            while True:
                try:
                    await self.beat()
                except (StoreUnavailable, LeaseLost) as error:
                    logger.warning("the leases could not be kept: %s", error)
                except Exception:
                    logger.exception("the leases could not be kept")
                await asyncio.sleep(BEAT_SECONDS)

    async def beat(self) -> None:
        """One round. Raises ``StoreUnavailable``; what was not done is tried in the next one."""
        archive = self._archive
        runs, now = archive.store.runs, archive.clock.time()
        for key in await runs.renew(archive.replica, archive.lease()):
            if not self._holds(key):
                await self._drop(key)
        # Who has not reached the store for so long says nothing of others' silence: they may just not have, either.
        if now - self._heard <= LEASE_SECONDS:
            for record in await runs.expired(now):
                if await runs.take_over(record, archive.replica, archive.lease()):
                    await self._bury(record)
        self._heard = archive.clock.time()
        await runs.forget(now - KEPT_SECONDS)
        await archive.store.interrupts.expire(now)

    async def _drop(self, key: RunKey) -> None:
        """A run whose end could not be written when it came."""
        record = await self._archive.store.runs.get(key)
        if record is not None and record.active and not self._holds(key):
            await self._bury(record)

    async def _bury(self, record: RunRecord) -> None:
        """Write what a lost run owes its readers."""
        logger.warning("run=<%s> | its replica <%s> has gone", record.key.run_id, record.replica)
        archive, key = self._archive, record.key
        envelopes: list[Envelope] = []
        while page := await archive.store.runs.envelopes(key, len(envelopes)):
            envelopes += page
        kept = await archive.store.threads.changes(key.thread)
        messages = [message.data for message in kept.messages] if kept else []
        found = await anyio.to_thread.run_sync(read, key, [each.data for each in envelopes], messages)
        last = numbered(
            key.run_id,
            len(envelopes),
            [*(found.closers if found else ()), RunErrorEvent(message=LOST, code=Code.RUN_LOST)],
        )
        now = archive.clock.time()
        pending = [goal for goal in (kept.goals if kept else None) or () if goal.status is GoalStatus.PENDING]
        for goal in pending:
            await archive.store.goals.conclude(RunKey(*key.thread, goal.run_id), goal.index, GoalStatus.FAILED, now)
        turn = ThreadStatus.GOALS_FAILED if pending else ThreadStatus.USER_TURN
        await archive.store.runs.finish(key, archive.replica, last, ending_of_lost(key, now, found, turn))
        try:
            await archive.bus.publish(key, last)
        except BusUnavailable as error:
            logger.warning("run=<%s> | the bus does not answer: %s", key.run_id, error)

    async def _listen(self) -> None:
        while True:
            try:
                async for command in self._archive.bus.commands(self._archive.replica):
                    self._obey(command)
            except BusUnavailable as error:
                logger.warning("other replicas are not heard: %s", error)
            await asyncio.sleep(PAUSE_SECONDS)

    def _obey(self, command: bytes) -> None:
        try:
            self._cancel(RunKey(*from_json(command)))
        except (TypeError, ValueError):
            logger.warning("a command of another replica cannot be read")


def read(key: RunKey, events: list[bytes], messages: list[bytes]) -> Recovered | None:
    """What a run's events say; None where they cannot be read, because its end must not depend on it."""
    try:
        return recovered(events, messages, LOST)
    except (IllegalEvent, ValueError):
        logger.exception("run=<%s> | its events cannot be read; it ends without what they left", key.run_id)
        return None


def numbered(run_id: str, after: int, events: list[BaseEvent]) -> list[Envelope]:
    """Events as the envelopes that follow."""
    return [
        Envelope(run_id, seq, kind_of(type(event)).type, encode(event))
        for seq, event in zip(count(after + 1), events, strict=False)
    ]


def ending_of_lost(key: RunKey, now: float, found: Recovered | None, turn: ThreadStatus) -> Ending:
    """How it ended, and what it left to its thread."""
    change = Change()
    if found is not None:
        messages = [StoredMessage(message.id, dumped(message), key.run_id) for message in found.messages]
        change = Change(messages=messages, order=found.order)
    return Ending(RunStatus.ERROR, now, turn, error=to_json({"code": Code.RUN_LOST, "message": LOST}), change=change)
