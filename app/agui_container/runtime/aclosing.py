"""Closing of asynchronous iterators.

Rule: the code that opens an asynchronous iterator closes it, even if it stops iterating early. Otherwise the
``finally`` blocks of the generator (such as a user's agent or a model's connection) run later and in another task.
"""

from collections.abc import AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class maybe_aclosing(Generic[T]):  # noqa: N801 - used like a function
    """Context manager like ``contextlib.aclosing`` that also accepts iterators without ``aclose``."""

    __slots__ = ("_items",)

    def __init__(self, items: AsyncIterator[T]) -> None:
        self._items = items

    async def __aenter__(self) -> AsyncIterator[T]:
        return self._items

    async def __aexit__(self, *_: object) -> None:
        close = getattr(self._items, "aclose", None)
        if close is not None:
            await close()
