"""Entries in memory in the order in which they are evicted: the oldest first."""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class EvictionQueue(Generic[K]):
    """Keys of entries and their sizes, the oldest first."""

    def __init__(self, max_items: int, max_bytes: int = 0) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self.total_bytes = 0
        self._sizes: OrderedDict[K, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sizes)

    def __contains__(self, key: K) -> bool:
        return key in self._sizes

    def __iter__(self) -> Iterator[K]:
        """Iterate the keys, the oldest first. Nothing may change during the iteration."""
        return iter(self._sizes)

    def put(self, key: K, size: int = 0) -> None:
        self.total_bytes += size - self._sizes.pop(key, 0)
        self._sizes[key] = size

    def resize(self, key: K, size: int) -> None:
        self.total_bytes += size - self._sizes[key]
        self._sizes[key] = size

    def remove(self, key: K) -> None:
        self.total_bytes -= self._sizes.pop(key, 0)

    @property
    def is_full(self) -> bool:
        return len(self._sizes) > self._max_items or self.total_bytes > self._max_bytes
