"""Heads of the requests that one connection sends: the one that is being read, and those behind another request.

Rule: nothing more is parsed once a head is too large or too many requests wait. One read can hold thousands of
requests, and a small header takes forty times as much memory as it has bytes.
"""

from collections import deque
from typing import NoReturn

MAX_HEAD = 128_000
"""Memory of one head: its URL, and the name, the value and ``HEADER_BYTES`` of each header."""

HEADER_BYTES = 150
"""Memory of a parsed header, besides its name and its value."""

MAX_WAITING = 16
"""Requests of a connection that may wait behind the one that is being answered."""


class RequestHeads:
    """The heads of one connection, in order.

    Attributes:
        is_incomplete: True while a head is being read, and before the first one. False while a body or trailers are.
        refusal: text for the client once parsing has stopped, or None.
    """

    __slots__ = ("_size", "_unparsed", "_waiting", "is_incomplete", "refusal")

    def __init__(self) -> None:
        self.is_incomplete = True
        self.refusal: str | None = None
        self._size = 0
        self._unparsed = 0
        self._waiting = deque[int]()

    def begin(self) -> None:
        """Begin a head. Raises ``ValueError`` if too many requests wait."""
        if len(self._waiting) >= MAX_WAITING:
            self._refuse("Too many requests wait on this connection.")
        self.is_incomplete, self._size = True, 0

    def add(self, size: int) -> None:
        """Add a part of the head that has been parsed. Raises ``ValueError`` if the head is too large."""
        self._size += size
        if self._size > MAX_HEAD:
            self._refuse("The head of the request is too large.")

    def add_unparsed(self, size: int) -> None:
        """Add the bytes of a read that has not completed the head."""
        self._unparsed += size

    def end(self) -> None:
        """End the head."""
        self.is_incomplete, self._unparsed = False, 0

    def begin_waiting(self) -> None:
        """Note that the request of the head that has ended waits behind another one."""
        self._waiting.append(self._size)

    def end_waiting(self) -> bool:
        """Note that the request that has waited longest is being answered. Returns False if none has waited."""
        if not self._waiting:
            return False
        self._waiting.popleft()
        return True

    @property
    def memory(self) -> int:
        """Memory of the incomplete head and of those that wait."""
        incomplete = self._size + self._unparsed if self.is_incomplete else 0
        return incomplete + sum(self._waiting)

    def _refuse(self, reason: str) -> NoReturn:
        self.refusal = reason
        raise ValueError(reason)
