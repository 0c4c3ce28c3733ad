"""Things that live as long as their thread does: one for each, in one run at a time, and not too many.

Rule: whoever uses a thread's thing holds it alone. The engine frees a thread as soon as its run is over for its
readers; an agent that is still being unwound then is waited for. Only what nobody uses is dropped, the longest unused
first.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from msgspec import Struct, field

T = TypeVar("T")

THREADS = 1000
"""Threads whose agents are kept. One that comes back later starts anew, from the messages that the client sends."""


class _Kept(Struct, Generic[T]):
    value: T
    alone: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class PerThread(Generic[T]):
    """Makes with ``make`` what a thread does not have yet."""

    def __init__(self, make: Callable[[], T], room: int = THREADS) -> None:
        self._make = make
        self._room = room
        self._kept: OrderedDict[str, _Kept[T]] = OrderedDict()

    @asynccontextmanager
    async def of(self, thread: str) -> AsyncGenerator[T, None]:
        """The thread's own, once nobody else has it."""
        kept = self._kept.get(thread) or _Kept(self._make())
        self._kept[thread] = kept
        self._kept.move_to_end(thread)
        kept.users += 1
        try:
            async with kept.alone:
                yield kept.value
        finally:
            kept.users -= 1
            self._tidy()

    def drop(self, thread: str) -> None:
        """Forget the thread's own; whoever has it keeps it until it is done."""
        self._kept.pop(thread, None)

    def _tidy(self) -> None:
        surplus = len(self._kept) - self._room
        if surplus > 0:
            unused = [thread for thread, kept in self._kept.items() if not kept.users]
            for thread in unused[:surplus]:
                del self._kept[thread]
