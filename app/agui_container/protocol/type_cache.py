"""What is known of classes, found out once for each.

Rule: to look something up is one step of a dictionary, because an event is looked up several times; pydantic's
``isinstance``, and even the wrapper of ``lru_cache``, take longer than a step of the order. Agents may make classes
without end, so only so many are remembered.
"""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

MAX_TYPES = 1024
"""Classes that are remembered."""


class TypeCache(dict[type, T]):
    """Class to what is known of it.

    Args:
        find: finds it out. What it raises, a look-up raises.
    """

    def __init__(self, find: Callable[[type], T]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, kind: type) -> T:
        if len(self) >= MAX_TYPES:
            self.clear()
        found = self[kind] = self._find(kind)
        return found
