"""Values of a framework that belong to a thread, such as its agent.

Rule: the number of values is bounded. Only unused ones are evicted, the least recently used first. This module imports
no framework.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from msgspec import Struct, field

T = TypeVar("T")

THREADS = 1000
"""Maximum number of threads with an agent. An evicted thread starts again from the messages that the client sends."""


class _Entry(Struct, Generic[T]):
    value: T
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class PerThread(Generic[T]):
    """One value per thread, for one user at a time. Above ``max_threads`` unused values are evicted."""

    def __init__(self, make: Callable[[], T], max_threads: int = THREADS) -> None:
        self._make = make
        self._max_threads = max_threads
        self._entries: OrderedDict[str, _Entry[T]] = OrderedDict()

    @asynccontextmanager
    async def acquire(self, thread: str) -> AsyncGenerator[T, None]:
        """Lock the thread's value and yield it. Wait while another user has it."""
        entry = self._entries.get(thread) or _Entry(self._make())
        self._entries[thread] = entry
        self._entries.move_to_end(thread)
        entry.users += 1
        try:
            async with entry.lock:
                yield entry.value
        finally:
            entry.users -= 1
            self._evict()

    def drop(self, thread: str) -> None:
        """Remove the thread's value. A current user can finish with it."""
        self._entries.pop(thread, None)

    async def forget(self, thread: str) -> None:
        """Implements ``AdapterSource.forget``."""
        self.drop(thread)

    def _evict(self) -> None:
        surplus = len(self._entries) - self._max_threads
        if surplus > 0:
            unused = [thread for thread, entry in self._entries.items() if not entry.users]
            for thread in unused[:surplus]:
                del self._entries[thread]
