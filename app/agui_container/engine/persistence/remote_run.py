"""A run that is not in this process: what the store has of it, and then what its replica tells.

Rule: nothing is missed and nothing comes twice: a gap on the bus is filled from the store, and silence there is time to
ask the store whether the run still goes on. Who reads to the end gets a terminal event, also of a run that is deleted
meanwhile. Nothing is kept here, so a slow reader costs nothing.
"""

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Self, TypeVar

from ag_ui.core import EventType, RunErrorEvent

from agui_container.engine.log.presence import WATCH_SECONDS, Presence
from agui_container.engine.log.subscription import PushBatch
from agui_container.engine.log.transcoded_log import EncodeEvent, TranscodedLog
from agui_container.engine.persistence.cluster import (
    FIRST_PAUSE,
    GIVE_UP_SECONDS,
    LONGEST_PAUSE,
    Cluster,
    ReplicaCommand,
)
from agui_container.engine.terminal_events import number_events
from agui_container.ports.bus import BusUnavailable, Missed
from agui_container.ports.records import RunKey, RunRecord
from agui_container.ports.store import StoreUnavailable, store_errors_as_app_errors
from agui_container.protocol.errors import ErrorCode
from agui_container.protocol.wire.envelope import Batch, Envelope
from agui_container.runtime.aclosing import maybe_aclosing

T = TypeVar("T")

logger = logging.getLogger(__name__)

SILENCE_SECONDS, LONGEST_SILENCE = 0.25, 2.0
"""How long nothing may come before the store is asked; longer each time that it has nothing, either."""

TERMINAL = (EventType.RUN_FINISHED, EventType.RUN_ERROR)

DELETED = "This run was deleted while it was read."


class RemoteRun:
    """A run as its record shows it.

    Args:
        archive: the store and the bus.
        record: as it was found.
    """

    def __init__(self, cluster: Cluster, record: RunRecord) -> None:
        self.record = record
        self.presence = Presence()
        self.log = RemoteLog(record)
        self._cluster = cluster

    @property
    def key(self) -> RunKey:
        """Owner, thread and run."""
        return self.record.key

    def subscribe(self, after: int = 0, on_close: Callable[[], None] | None = None) -> "RemoteSubscription":
        """Read the events after ``seq`` ``after`` until the run ends."""
        return RemoteSubscription(self, self._cluster, after, on_close)

    def cancel(self) -> None:
        """Do nothing: the run does not end with its readers on this replica."""


class RemoteLog:
    """Its events, as the record counts them."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record

    def __len__(self) -> int:
        return self._record.last_seq

    @property
    def has_ended(self) -> bool:
        """Whether it had when it was looked up."""
        return not self._record.is_active

    def transcoded(self, encode: EncodeEvent) -> TranscodedLog:
        """The events in another encoding, made anew for each reader because nothing is kept."""
        return TranscodedLog(encode, lambda _: None)


class RemoteSubscription:
    """Implements ``Subscription`` for a run that is not in this process.

    Attributes:
        is_exhausted: whether all events were handed out that will ever come.
    """

    def __init__(self, run: RemoteRun, cluster: Cluster, after: int, on_close: Callable[[], None] | None) -> None:
        record = run.record
        self.run = run
        self.is_exhausted = not record.is_active and after == record.last_seq
        self._cluster = cluster
        self._key = record.key
        self._began = record.started_at
        self._after = after
        self._on_close = on_close
        self._name = cluster.new_id()
        self._is_closed = self._is_interrupted = False
        self._watch_at = -math.inf
        self._batches = self._read()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        """The next batch; an empty one after ``interrupt``."""
        return await anext(self._batches)

    def push_to(self, push: PushBatch) -> None:
        """Push nothing: every batch is read from the store or the bus, by the iteration."""

    def interrupt(self) -> None:
        """Hand out an empty batch at the next silence."""
        self._is_interrupted = True

    def close(self) -> None:
        """End the iteration at the next silence. Harmless when called again."""
        if not self._is_closed:
            self._is_closed = True
            if self._on_close is not None:
                self._on_close()

    async def _read(self) -> AsyncIterator[Batch]:
        """Raises ``AppError`` STORE_UNAVAILABLE for a store that does not answer any more."""
        silence = SILENCE_SECONDS
        while not (self._is_closed or self.is_exhausted):
            before, envelopes = self._after, await self._ask_store(self._read_store)
            # After them, because a run that is deleted may be followed by another of the same ids.
            record = await self._ask_store(self._look_up)
            if record is None:
                error = RunErrorEvent(message=DELETED, code=ErrorCode.RUN_LOST)
                yield self._advance(number_events(self._key.run_id, self._after, [error]))
            elif envelopes:
                silence = SILENCE_SECONDS
                yield self._advance(envelopes)
            elif record.is_active:
                async with aclosing(self._follow_bus(silence)) as batches:
                    async for batch in batches:
                        yield batch
                        if self.is_exhausted:
                            return
                silence = SILENCE_SECONDS if self._after > before else min(2 * silence, LONGEST_SILENCE)
            elif record.last_seq <= self._after:
                return

    async def _look_up(self) -> RunRecord | None:
        """How it stands, if it is still there; its replica is told that it is read."""
        record = await self._cluster.store.runs.get(self._key)
        if record is None or record.started_at != self._began:
            return None
        if record.is_active:
            await self._watch(record.replica)
        return record

    async def _watch(self, replica: str) -> None:
        """Tell the run's replica now and then that it has a reader."""
        now = asyncio.get_running_loop().time()
        if now >= self._watch_at:
            self._watch_at = now + WATCH_SECONDS
            await self._cluster.send(replica, ReplicaCommand.READER_PRESENT, self._key, self._name)

    async def _read_store(self) -> Sequence[Envelope]:
        return await self._cluster.store.runs.envelopes(self._key, self._after)

    async def _ask_store(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The store may be away for as long as the run's own replica waits for it."""
        pause, deadline = FIRST_PAUSE, asyncio.get_running_loop().time() + GIVE_UP_SECONDS
        while True:
            try:
                return await ask()
            except StoreUnavailable as error:
                logger.warning("run=<%s> | the store does not answer: %s", self._key.run_id, error)
                if self._is_closed or asyncio.get_running_loop().time() > deadline:
                    with store_errors_as_app_errors():
                        raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _follow_bus(self, silence: float) -> AsyncGenerator[Batch, None]:
        """What the bus brings, until it is silent, has lost something, or others must be told that we read.

        One that does not answer is as good as a silent one.
        """
        try:
            async with maybe_aclosing(self._cluster.bus.follow(self._key, self._after, silence)) as batches:
                async for envelopes in batches:
                    if self._is_closed:
                        return
                    if not envelopes:
                        break
                    yield self._advance(envelopes)
                    if asyncio.get_running_loop().time() >= self._watch_at:
                        return
        except Missed:
            return
        except BusUnavailable as error:
            logger.warning("run=<%s> | the bus does not answer: %s", self._key.run_id, error)
            await asyncio.sleep(silence)
        if self._is_interrupted and not self._is_closed:
            self._is_interrupted = False
            yield Batch(self._key.run_id, self._after + 1, [], [])

    def _advance(self, envelopes: Sequence[Envelope]) -> Batch:
        first = self._after + 1
        self._after, self.is_exhausted = envelopes[-1].seq, envelopes[-1].type in TERMINAL
        return Batch(self._key.run_id, first, [each.type for each in envelopes], [each.data for each in envelopes])
