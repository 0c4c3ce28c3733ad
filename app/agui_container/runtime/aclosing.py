"""Leaving an asynchronous stream properly.

Rule: whoever opens a stream closes it, also when it is left half-way; only then do the ``finally`` blocks of the one
who feeds it (a model's connection, a user's generator) run at once and in the right task.
"""

from collections.abc import AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class maybe_aclosing(Generic[T]):  # noqa: N801 - used like a function
    """Like ``contextlib.aclosing``, for iterators that may have nothing to close. Every run holds one."""

    __slots__ = ("_items",)

    def __init__(self, items: AsyncIterator[T]) -> None:
        self._items = items

    async def __aenter__(self) -> AsyncIterator[T]:
        return self._items

    async def __aexit__(self, *_: object) -> None:
        close = getattr(self._items, "aclose", None)
        if close is not None:
            await close()
