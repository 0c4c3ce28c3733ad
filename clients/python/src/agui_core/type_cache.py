"""Cache of facts about classes, computed once per class.

Rule: a look-up is one dictionary access, because every event needs several of them. ``lru_cache`` and pydantic's
``isinstance`` are too slow here. The size is bounded, because an agent may create classes at run time.
"""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

MAX_TYPES = 1024
"""Maximum number of cached classes. The cache is cleared when it is full."""


class TypeCache(dict[type, T]):
    """Mapping from a class to a computed value. A look-up raises exceptions unchanged and caches nothing then."""

    def __init__(self, compute: Callable[[type], T]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, kind: type) -> T:
        if len(self) >= MAX_TYPES:
            self.clear()
        value = self[kind] = self._compute(kind)
        return value
