"""Shares of a bounded resource: amounts by account, and the order in which entries in memory are evicted.

Rule: one account may use all of a resource as long as there is room. If the resource is full, entries of the account
with the largest share are evicted first, and an account with more than half never evicts entries of another one.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

LARGE_PART = 4
"""An account is large if it holds more than this part of a limit: one of four. The others are treated alike."""

K = TypeVar("K", bound=Hashable)


class AmountsByAccount:
    """Amounts of one resource by account.

    Args:
        limit: largest sum of all amounts before entries are evicted.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self._amounts: dict[str, int] = {}
        self._large: set[str] = set()

    def add(self, account: str, amount: int) -> None:
        """Add to the amount of an account; a negative amount is given back."""
        self.total += amount
        new = self._amounts.get(account, 0) + amount
        if new:
            self._amounts[account] = new
        else:
            self._amounts.pop(account, None)
        if new > self.limit // LARGE_PART:
            self._large.add(account)
        else:
            self._large.discard(account)

    def of(self, account: str) -> int:
        """Return the amount of an account."""
        return self._amounts.get(account, 0)

    @property
    def is_over(self) -> bool:
        """True if the sum exceeds the limit."""
        return self.total > self.limit

    def largest(self) -> str | None:
        """Return the large account with the largest amount, or None if no account is large."""
        return max(self._large, key=self.of, default=None)


class EvictionQueue(Generic[K]):
    """Keys of entries in memory, in the order in which they are evicted.

    Args:
        max_items: limit of the number of entries.
        max_bytes: limit of their sizes.
    """

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self.items = AmountsByAccount(max_items)
        self.bytes = AmountsByAccount(max_bytes)
        self._entries: OrderedDict[K, tuple[str, int]] = OrderedDict()
        self._keys: dict[str, OrderedDict[K, None]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def put(self, key: K, account: str, size: int) -> None:
        """Add an entry as the newest one, or make a known one the newest with a new size."""
        self.remove(key)
        self._entries[key] = account, size
        self._keys.setdefault(account, OrderedDict())[key] = None
        self.items.add(account, 1)
        self.bytes.add(account, size)

    def resize(self, key: K, size: int) -> None:
        """Change the size of an entry. It keeps its place."""
        account, before = self._entries[key]
        self._entries[key] = account, size
        self.bytes.add(account, size - before)

    def remove(self, key: K) -> None:
        """Remove an entry, if there is one."""
        if (entry := self._entries.pop(key, None)) is None:
            return
        account, size = entry
        del self._keys[account][key]
        if not self._keys[account]:
            del self._keys[account]
        self.items.add(account, -1)
        self.bytes.add(account, -size)

    def of(self, account: str) -> Iterator[K]:
        """Iterate the keys of an account, the oldest first. Nothing may change during the iteration."""
        return iter(self._keys.get(account, ()))

    @property
    def is_full(self) -> bool:
        """True if a limit is exceeded, so that entries must be evicted."""
        return self.items.is_over or self.bytes.is_over

    def candidates(self) -> Iterator[K]:
        """Iterate the keys in the order in which they are evicted. Nothing may change during the iteration.

        The oldest entry of the largest account is the first one. If that account holds more than half of the limit,
        there are no others.
        """
        for shares in (self.items, self.bytes):
            if shares.is_over and (account := shares.largest()) is not None:
                yield from self._keys[account]
                if 2 * shares.of(account) > shares.limit:
                    return
        yield from self._entries
