"""Leaving an asynchronous stream properly.

Rule: whoever opens a stream closes it, also when it is left half-way; only then do the ``finally`` blocks of the one
who feeds it (a model's connection, a user's generator) run at once and in the right task.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable
class _Closable(Protocol):
    async def aclose(self) -> None: ...


@asynccontextmanager
async def closing(items: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Like ``contextlib.aclosing``, for iterators that may have nothing to close."""
    try:
        yield items
    finally:
        if isinstance(items, _Closable):
            await items.aclose()
