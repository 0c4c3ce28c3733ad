"""Pending interrupts in memory, within limits.

Rule: at a limit, the scope without writes for the longest time is evicted, and the log reports it. The module is not
part of ``stores``, because an assistant without a store uses it, too.
"""

import logging
from collections import OrderedDict
from collections.abc import Sequence

from msgspec.structs import replace

from agui_container.ports.records import InterruptScope, PendingInterrupt, ThreadKey

MAX_BYTES = 64_000_000
MAX_PLACES = 10_000

logger = logging.getLogger(__name__)


class MemoryInterrupts:
    """``InterruptStore`` in memory."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_places: int = MAX_PLACES) -> None:
        self._max_bytes = max_bytes
        self._max_places = max_places
        self._places: OrderedDict[InterruptScope, dict[str, PendingInterrupt]] = OrderedDict()
        self._bytes = 0

    async def put(self, place: InterruptScope, held: Sequence[PendingInterrupt]) -> None:
        """Store interrupts. Each replaces an earlier one with the same id."""
        if held:
            self._put(place, self._places.get(place, {}) | {interrupt.id: interrupt for interrupt in held})
            self._evict()

    async def list_open(self, place: InterruptScope, now: float) -> Sequence[PendingInterrupt]:
        """List the interrupts that have not expired, in the order in which they were first stored."""
        return [interrupt for interrupt in self._places.get(place, {}).values() if interrupt.until > now]

    async def settle(self, place: InterruptScope, id: str, payload: bytes, until: float, now: float) -> bool:  # noqa: A002 - as in the port
        """Settle an interrupt that is open and has not expired. Return True if this call settled it."""
        entries = self._places.get(place, {})
        interrupt = entries.get(id)
        if interrupt is None or interrupt.settled or interrupt.until <= now:
            return False
        self._put(place, entries | {id: replace(interrupt, payload=payload, until=until, settled=True)})
        return True

    async def expire(self, now: float) -> None:
        """Delete expired interrupts."""
        for place, entries in list(self._places.items()):
            remaining = {name: interrupt for name, interrupt in entries.items() if interrupt.until > now}
            if len(remaining) < len(entries):
                self._put(place, remaining)

    def remove(self, thread: ThreadKey) -> None:
        """Delete all interrupts of a thread."""
        for place in [place for place in self._places if place.thread == thread]:
            self._put(place, {})

    def _put(self, place: InterruptScope, entries: dict[str, PendingInterrupt]) -> None:
        self._bytes += size_of_entries(entries) - size_of_entries(self._places.pop(place, {}))
        if entries:
            self._places[place] = entries

    def _evict(self) -> None:
        while self._bytes > self._max_bytes or len(self._places) > self._max_places:
            oldest = next(iter(self._places))
            logger.warning("pending interrupts evicted from memory thread=%s", oldest.thread_id)
            self._put(oldest, {})


def size_of_entries(entries: dict[str, PendingInterrupt]) -> int:
    """Return the bytes of the payloads."""
    return sum(len(interrupt.payload) for interrupt in entries.values())
