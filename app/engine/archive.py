"""The store and the bus as this process uses them: who it is there, and for how long its word counts.

Rule: what a store or a bus cannot do right now becomes STORE_UNAVAILABLE for those who asked; nothing else of it leaves
the engine. The replica's name is made when the process opens, because a restored snapshot must not share it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pydantic_core import to_json

from app.core.errors import AppError, Code
from app.ports import Clock
from app.ports.bus import Bus, BusUnavailable
from app.ports.records import RunRecord
from app.ports.store import Store, StoreUnavailable

LEASE_SECONDS = 6.0
"""How long a run stays a replica's without a word from it."""

GIVE_UP_SECONDS = 20.0
"""How long a store may not answer before its runs are ended, and their readers are let go."""

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
"""Seconds between two tries: for a thread that is busy, and of a store that does not answer."""


class Archive:
    """One process's door to what is kept.

    Args:
        store: keeps threads and runs.
        bus: tells other replicas.
        durable: whether the store outlives the process; then readers see only what is stored.
        new_id: makes the replica's name.
    """

    def __init__(self, store: Store, bus: Bus, clock: Clock, *, durable: bool, new_id: Callable[[], str]) -> None:
        self.store = store
        self.bus = bus
        self.clock = clock
        self.durable = durable
        self.replica = ""
        self._new_id = new_id

    async def open(self) -> None:
        """Connect. Raises ``StoreUnavailable`` or ``BusUnavailable``: a start without them is none."""
        await self.store.open()
        await self.bus.open()
        self.replica = self._new_id()

    async def aclose(self) -> None:
        """Let go of connections."""
        await self.bus.aclose()
        await self.store.aclose()

    async def cancel(self, run: RunRecord) -> None:
        """Have the replica that runs it end it. Raises ``BusUnavailable``."""
        await self.bus.send(run.replica, to_json(run.key))

    def lease(self) -> float:
        """Until when a run that is claimed now is this replica's, in Unix seconds."""
        return self.clock.time() + LEASE_SECONDS


@contextmanager
def available() -> Iterator[None]:
    """Raises ``AppError`` STORE_UNAVAILABLE for a store or a bus that does not answer."""
    try:
        yield
    except (StoreUnavailable, BusUnavailable) as error:
        raise unavailable() from error


def unavailable() -> AppError:
    """What those are told who asked for it."""
    return AppError(Code.STORE_UNAVAILABLE, "What this server keeps cannot be reached right now.")
