"""Leaving an asynchronous stream properly.

Rule: whoever opens a stream closes it, also when it is left half-way; only then do the ``finally`` blocks of the one
who feeds it (a model's connection, a user's generator) run at once and in the right task.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


@asynccontextmanager
async def closing(items: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Like ``contextlib.aclosing``, for iterators that may have nothing to close."""
    try:
        yield items
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
