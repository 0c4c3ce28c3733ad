"""What is kept for threads, in memory and within bounds.

Rule: nothing outlives its lifetime once something else is put, the oldest threads make room for newer ones, and the log
says so.
"""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

MAX_THREADS = 10_000

Place = tuple[int, str, str]
"""How deep below the first assistant, owner, thread id."""

logger = logging.getLogger(__name__)


class Weighed(Protocol):
    """Something that takes room."""

    @property
    def size(self) -> int:
        """In bytes."""


T = TypeVar("T", bound=Weighed)


@dataclass(frozen=True, slots=True)
class _Row(Generic[T]):
    things: Sequence[T]
    size: int
    until: float


class Shelf(Generic[T]):
    """Things by thread.

    Args:
        name: what they are, for the log.
        lifetime: seconds for which a thread's are kept after they were put.
        max_bytes: what those of all threads may take.
    """

    def __init__(self, name: str, lifetime: float, max_bytes: int) -> None:
        self._name = name
        self._lifetime = lifetime
        self._max_bytes = max_bytes
        self._rows: OrderedDict[Place, _Row[T]] = OrderedDict()
        self._bytes = 0

    def of(self, place: Place) -> Sequence[T]:
        """A thread's, in the order in which they were put."""
        row = self._rows.get(place)
        return row.things if row else ()

    def put(self, place: Place, things: Sequence[T], now: float) -> None:
        """Keep these for a thread in place of what it had."""
        self._remove(place)
        self._expire(now)
        if things:
            size = sum(thing.size for thing in things)
            self._rows[place] = _Row(tuple(things), size, now + self._lifetime)
            self._bytes += size
        self._make_room()

    def _remove(self, place: Place) -> None:
        row = self._rows.pop(place, None)
        self._bytes -= row.size if row else 0

    def _expire(self, now: float) -> None:
        """Rows stand in the order in which they were put, so those that have expired come first."""
        while self._rows and next(iter(self._rows.values())).until <= now:
            self._remove(next(iter(self._rows)))

    def _make_room(self) -> None:
        while self._bytes > self._max_bytes or len(self._rows) > MAX_THREADS:
            oldest = next(iter(self._rows))
            _, _, thread_id = oldest
            logger.warning("thread=<%s> | its %s are forgotten: there are too many", thread_id, self._name)
            self._remove(oldest)
