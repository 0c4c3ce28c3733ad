"""Pending interrupts in memory, within limits.

Rule: at a limit, the scope without writes for the longest time is evicted, and the log reports it. The module is
not part of ``stores``, because an assistant without a store uses it, too.
"""

import logging
from collections.abc import Sequence

from msgspec.structs import replace

from agui_container.ports.records import InterruptScope, PendingInterrupt, ThreadKey
from agui_container.runtime.eviction_queue import EvictionQueue
from agui_container.runtime.log_values import format_fields

MAX_BYTES = 64_000_000
MAX_SCOPES = 10_000

logger = logging.getLogger(__name__)


class MemoryInterrupts:
    """``InterruptStore`` in memory.

    Args:
        max_bytes: limit of the payloads' bytes.
        max_scopes: limit of the number of scopes.
    """

    def __init__(self, max_bytes: int = MAX_BYTES, max_scopes: int = MAX_SCOPES) -> None:
        self._scopes: dict[InterruptScope, dict[str, PendingInterrupt]] = {}
        self._of_thread: dict[ThreadKey, dict[InterruptScope, None]] = {}
        self._eviction = EvictionQueue[InterruptScope](max_scopes, max_bytes)

    async def put(self, scope: InterruptScope, interrupts: Sequence[PendingInterrupt]) -> None:
        """Store interrupts. Each replaces an earlier one with the same id."""
        if interrupts:
            self._put(scope, self._scopes.get(scope, {}) | {interrupt.id: interrupt for interrupt in interrupts})
            self._evict()

    async def list_open(self, scope: InterruptScope, now: float) -> Sequence[PendingInterrupt]:
        """List the interrupts that have not expired, in the order in which they were first stored."""
        return [interrupt for interrupt in self._scopes.get(scope, {}).values() if interrupt.until > now]

    async def settle(self, scope: InterruptScope, id: str, payload: bytes, until: float, now: float) -> bool:  # noqa: A002 - as in the port
        """Settle an interrupt that is open and has not expired. Return True if this call settled it."""
        entries = self._scopes.get(scope, {})
        interrupt = entries.get(id)
        if interrupt is None or interrupt.is_settled or interrupt.until <= now:
            return False
        self._put(scope, entries | {id: replace(interrupt, payload=payload, until=until, is_settled=True)})
        return True

    async def expire(self, now: float) -> None:
        """Delete expired interrupts."""
        for scope, entries in list(self._scopes.items()):
            remaining = {name: interrupt for name, interrupt in entries.items() if interrupt.until > now}
            if len(remaining) < len(entries):
                self._put(scope, remaining)

    def remove(self, thread: ThreadKey) -> None:
        """Delete all interrupts of a thread."""
        for scope in tuple(self._of_thread.get(thread, ())):
            self._delete(scope)

    def _put(self, scope: InterruptScope, entries: dict[str, PendingInterrupt]) -> None:
        if not entries:
            self._delete(scope)
            return
        self._scopes[scope] = entries
        self._of_thread.setdefault(scope.thread, {})[scope] = None
        self._eviction.put(scope, size_of_entries(entries))

    def _delete(self, scope: InterruptScope) -> None:
        if self._scopes.pop(scope, None) is None:
            return
        self._eviction.remove(scope)
        scopes = self._of_thread[scope.thread]
        del scopes[scope]
        if not scopes:
            del self._of_thread[scope.thread]

    def _evict(self) -> None:
        while self._eviction.is_full:
            oldest = next(iter(self._eviction))
            logger.warning("pending interrupts evicted from memory %s", format_fields({"thread": oldest.thread_id}))
            self._delete(oldest)


def size_of_entries(entries: dict[str, PendingInterrupt]) -> int:
    """Return the bytes of the payloads."""
    return sum(len(interrupt.payload) for interrupt in entries.values())
