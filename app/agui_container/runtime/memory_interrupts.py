"""Pending interrupts in memory, within limits.

Rule: at a limit, the scope without writes for the longest time is evicted, and the log reports it. The scopes of the
largest caller are evicted first. The module is not part of ``stores``, because an assistant without a store uses it,
too.
"""

import logging
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from agui_container.ports.records import InterruptScope, PendingInterrupt, ThreadKey
from agui_container.runtime.log_values import format_fields
from agui_container.runtime.shares import EvictionQueue

MAX_BYTES = 64_000_000
MAX_PLACES = 10_000

logger = logging.getLogger(__name__)


class MemoryInterrupts:
    """``InterruptStore`` in memory.

    Args:
        max_bytes: limit of the payloads' bytes.
        max_places: limit of the number of scopes.
        account_of: returns the caller that the interrupts of a thread count for; by default the thread's owner.
    """

    def __init__(
        self,
        max_bytes: int = MAX_BYTES,
        max_places: int = MAX_PLACES,
        account_of: Callable[[ThreadKey], str] = lambda thread: thread.owner,
    ) -> None:
        self._places: dict[InterruptScope, dict[str, PendingInterrupt]] = {}
        self._of_thread: dict[ThreadKey, dict[InterruptScope, None]] = {}
        self._eviction = EvictionQueue[InterruptScope](max_places, max_bytes)
        self._account_of = account_of

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
        for place in tuple(self._of_thread.get(thread, ())):
            self._delete(place)

    def _put(self, place: InterruptScope, entries: dict[str, PendingInterrupt]) -> None:
        if not entries:
            self._delete(place)
            return
        self._places[place] = entries
        self._of_thread.setdefault(place.thread, {})[place] = None
        self._eviction.put(place, self._account_of(place.thread), size_of_entries(entries))

    def _delete(self, place: InterruptScope) -> None:
        if self._places.pop(place, None) is None:
            return
        self._eviction.remove(place)
        places = self._of_thread[place.thread]
        del places[place]
        if not places:
            del self._of_thread[place.thread]

    def _evict(self) -> None:
        while self._eviction.is_full:
            oldest = next(self._eviction.candidates())
            logger.warning("pending interrupts evicted from memory %s", format_fields({"thread": oldest.thread_id}))
            self._delete(oldest)


def size_of_entries(entries: dict[str, PendingInterrupt]) -> int:
    """Return the bytes of the payloads."""
    return sum(len(interrupt.payload) for interrupt in entries.values())
