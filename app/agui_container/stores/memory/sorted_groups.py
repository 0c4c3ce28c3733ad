"""Entries of several owners, sorted for each of them, so that a page of a list takes no look at all entries."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from operator import itemgetter
from typing import Generic, TypeVar

E = TypeVar("E")

Position = tuple[float, int]
"""Place of an entry in its group. Two entries never have the same number."""

position_of = itemgetter(0)


class SortedGroups(Generic[E]):
    """Entries by group, sorted by their positions."""

    def __init__(self) -> None:
        self._groups: dict[str, list[tuple[Position, E]]] = {}

    def add(self, group: str, position: Position, entry: E) -> None:
        """Add an entry."""
        insort(self._groups.setdefault(group, []), (position, entry), key=position_of)

    def remove(self, group: str, position: Position) -> None:
        """Remove the entry at a position."""
        entries = self._groups[group]
        del entries[bisect_left(entries, position, key=position_of)]
        if not entries:
            del self._groups[group]

    def last_first(self, group: str, below: Position | None = None) -> Iterator[tuple[Position, E]]:
        """Iterate the entries of a group below a position, the last one first. Nothing may change meanwhile."""
        entries = self._groups.get(group, [])
        end = len(entries) if below is None else bisect_left(entries, below, key=position_of)
        return (entries[at] for at in range(end - 1, -1, -1))
