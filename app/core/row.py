"""Ids in order, for what grows at its end and seldom elsewhere.

Rule: to put one behind another costs the same however many there are.
"""

from collections.abc import Iterable, Iterator


class Row:
    """A row of ids, each once."""

    __slots__ = ("_last", "_next")

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._next: dict[str | None, str] = {}
        self._last: str | None = None
        for each in ids:
            self.append(each)

    def __iter__(self) -> Iterator[str]:
        ids, following = [], self._next.get(None)
        while following is not None:
            ids.append(following)
            following = self._next.get(following)
        return iter(ids)

    def after(self, other: str) -> str | None:
        """The one behind that one; None behind the last."""
        return self._next.get(other)

    def append(self, new: str) -> None:
        """Put a new one behind the last."""
        self._next[self._last] = self._last = new

    def insert(self, new: str, other: str) -> None:
        """Put a new one behind that one."""
        if other == self._last:
            self.append(new)
        else:
            self._next[other], self._next[new] = new, self._next[other]
