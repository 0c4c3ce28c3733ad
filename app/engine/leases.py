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

from app.core.errors import Code, IllegalEvent
from app.core.history import dumped
from app.core.recovery import Recovered, recovered
from app.core.wire import Envelope
from app.engine.archive import LEASE_SECONDS, Archive, Told
from app.engine.boundary import numbered
from app.ports.bus import BusUnavailable
from app.ports.conversation import Change, Delta, Ending, GoalStatus, StoredMessage, ThreadStatus
from app.ports.records import RunKey, RunRecord, RunStatus, Standing
from app.ports.store import LeaseLost, StoreUnavailable

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


class Here(Protocol):
    """The runs of this process."""

    def claimed(self) -> Sequence[RunKey]:
        """Those that go on and that the store knows."""

    def standings(self) -> Sequence[Standing]:
        """How those stand."""

    def holds(self, key: RunKey) -> bool:
        """Whether a run goes on here, or is being written down."""

    def cancel(self, key: RunKey) -> None:
        """End a run; harmless where it is not."""

    def watched(self, key: RunKey, reader: str) -> None:
        """A run has a reader on another replica; harmless where it is not."""

    def lost(self, key: RunKey) -> None:
        """A run is another replica's now; harmless where it is not."""


class Leases:
    """The keeper of one process's leases."""

    def __init__(self, archive: Archive, here: Here) -> None:
        self._archive = archive
        self._here = here
        self._stray: Sequence[RunKey] = ()
        self._told: Mapping[RunKey, Standing] = {}
        self._renewed = self._since = -math.inf

    async def keep(self) -> None:
        """Until it is cancelled: say that we live, end the runs of the dead, and hear what others want of us.

        Each in a task of its own, so that nothing that takes long keeps us from saying that we live.
        """
        async with asyncio.TaskGroup() as tasks:
            for work, pause in (
                (self._listen, PAUSE_SECONDS),
                (self.renew, BEAT_SECONDS),
                (self.tell, BEAT_SECONDS),
                (self.bury, BEAT_SECONDS),
                (self.tidy, TIDY_SECONDS),
            ):
                tasks.create_task(again_and_again(work, pause), name=work.__name__)

    async def renew(self) -> None:
        """Say that we live. What is ours no more ends here, and what is unwanted.

        Raises:
            StoreUnavailable: nobody has heard it.
        """
        archive, here = self._archive, self._here
        claimed = here.claimed()
        leases = await archive.store.runs.renew(archive.replica, archive.lease())
        self._note(archive.clock.time())
        for lease in leases:
            if lease.unwanted:
                here.cancel(lease.key)
        ours = {lease.key for lease in leases}
        self._stray = [key for key in ours if not here.holds(key)]
        for key in claimed:
            if key not in ours:
                here.lost(key)

    async def tell(self) -> None:
        """Note how our runs stand, where that has changed. Raises ``StoreUnavailable``, and then tells it again."""
        archive, standings = self._archive, {it.key: it for it in self._here.standings()}
        news = [it for it in standings.values() if self._told.get(it.key) != it]
        if news:
            await archive.store.runs.note(archive.replica, news)
        self._told = standings

    def _note(self, now: float) -> None:
        """The store has answered; since when it does so without a break. A clock that is set back breaks it as well."""
        if not 0 <= now - self._renewed <= LEASE_SECONDS:
            self._since = now
        self._renewed = now

    async def bury(self) -> None:
        """End the runs that nobody holds. Raises ``StoreUnavailable``; what was not done is tried in the next round.

        Who has not reached the store for a while says nothing of others' silence: they may just not have, either.
        """
        archive = self._archive
        runs, now = archive.store.runs, archive.clock.time()
        for key in self._stray:
            with logged(key):
                await self._drop(key)
        if not self._since + LEASE_SECONDS <= now <= self._renewed + LEASE_SECONDS:
            return
        for record in await runs.expired(now):
            if self._here.holds(record.key):
                continue  # ours, and the store is slow to hear that we live
            with logged(record.key):
                if await runs.take_over(record, archive.replica, archive.lease()):
                    await self._bury(record)

    async def tidy(self) -> None:
        """Forget what is old, bit by bit. Raises ``StoreUnavailable``."""
        store, now = self._archive.store, self._archive.clock.time()
        while await store.runs.forget(now - KEPT_SECONDS, limit=1):
            pass
        await store.interrupts.expire(now)

    async def _drop(self, key: RunKey) -> None:
        """A run whose end could not be written when it came."""
        record = await self._archive.store.runs.get(key)
        if record is not None and record.active and not self._here.holds(key):
            await self._bury(record)

    async def _bury(self, record: RunRecord) -> None:
        """Write what a lost run owes its readers."""
        logger.warning("run=<%s> | its replica <%s> has gone", record.key.run_id, record.replica)
        archive, key = self._archive, record.key
        envelopes: list[Envelope] = []
        while page := await archive.store.runs.envelopes(key, len(envelopes)):
            envelopes += page
        kept = await archive.store.threads.changes(key.thread)
        found = await anyio.to_thread.run_sync(read, key, [each.data for each in envelopes], kept)
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
        await archive.store.runs.finish(key, archive.replica, last, ending_of_lost(record, now, found, turn))
        await archive.publish(key, last)

    async def _listen(self) -> None:
        """Raises ``BusUnavailable``."""
        async for command in self._archive.bus.commands(self._archive.replica):
            self._obey(command)

    def _obey(self, command: bytes) -> None:
        obey: Mapping[Told, Callable[..., None]] = {Told.CANCEL: self._here.cancel, Told.WATCHED: self._here.watched}
        try:
            told, owner, thread_id, run_id, *more = from_json(command)
            obey[Told(told)](RunKey(owner, thread_id, run_id), *more)
        except (TypeError, ValueError):
            logger.warning("what another replica says cannot be read")


async def again_and_again(work: Callable[[], Awaitable[None]], pause: float) -> None:
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
def logged(key: RunKey) -> Iterator[None]:
    """One run that cannot be ended does not keep the others waiting. Raises ``StoreUnavailable``."""
    try:
        yield
    except LeaseLost as error:
        logger.warning("run=<%s> | somebody else ends it: %s", key.run_id, error)
    except StoreUnavailable:
        raise
    except Exception:
        logger.exception("run=<%s> | it cannot be ended", key.run_id)


def read(key: RunKey, events: list[bytes], kept: Delta | None) -> Recovered | None:
    """What a run's events say; None where they cannot be read, because its end must not depend on it."""
    messages = [message.data for message in kept.messages] if kept else []
    try:
        return recovered(events, messages, kept.state if kept else None, LOST)
    except (IllegalEvent, ValueError):
        logger.exception("run=<%s> | its events cannot be read; it ends without what they left", key.run_id)
        return None


def ending_of_lost(record: RunRecord, now: float, found: Recovered | None, turn: ThreadStatus) -> Ending:
    """How it ended, and what it left to its thread."""
    change = Change()
    if found is not None:
        messages = [StoredMessage(message.id, dumped(message), record.key.run_id) for message in found.messages]
        change = Change(messages, found.order, found.state, found.title)
    error = to_json({"code": Code.RUN_LOST, "message": LOST})
    return Ending(RunStatus.ERROR, now, turn, record.usage, error, change)
