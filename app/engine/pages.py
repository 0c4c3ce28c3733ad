"""What a log holds: encoded events by number, the deltas of a stream as a stretch.

Rule: an event is given back byte for byte, whatever it is held as.
"""

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from ag_ui.core import EventType

from app.core.stretch import Stretch


class Whole:
    """Events that are held as they are.

    Args:
        start: how many events of the run stand before it.
    """

    __slots__ = ("_data", "_types", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self._data: list[bytes] = []
        self._types: list[EventType] = []

    @property
    def end(self) -> int:
        """How many events there are with its own."""
        return self.start + len(self._data)

    def append(self, event_type: EventType, data: bytes) -> None:
        """One more."""
        self._data.append(data)
        self._types.append(event_type)

    def read(self, after: int, last: int) -> list[bytes]:
        """The JSON of those after number ``after`` to ``last``; the first one's number is 1."""
        return self._data[after:last]

    def types(self, after: int, last: int) -> list[EventType]:
        """Their types."""
        return self._types[after:last]

    def cut(self, count: int) -> None:
        """Keep so many."""
        del self._data[count:], self._types[count:]


Part = Whole | Stretch


class Pages:
    """Events in order."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[Part] = []

    def append(self, event_type: EventType, data: bytes) -> None:
        """One more, as it is."""
        part = self._parts[-1] if self._parts else None
        if type(part) is not Whole:
            part = Whole(self._count)
            self._parts.append(part)
        part.append(event_type, data)

    def follow(self, stretch: Stretch) -> None:
        """Those that go on with the last event are there, until they are broken up or another one is appended."""
        self._parts.append(stretch)

    def break_up(self, stretch: Stretch) -> str | None:
        """Hold the events of the last stretch as they are. What they say."""
        self._parts.pop()
        for data in stretch.read(0, stretch.count) if stretch.count else ():
            self.append(stretch.type, data)
        return stretch.text() or None

    @property
    def _count(self) -> int:
        last = self._parts[-1] if self._parts else None
        return 0 if last is None else last.end

    def read(self, after: int, last: int) -> list[bytes]:
        """The JSON of those after number ``after`` to ``last``."""
        parts = self._with(after, last)
        if len(parts) == 1:  # most are read when they have come
            return parts[0].read(after - parts[0].start, last - parts[0].start)
        return [each for part in parts for each in part.read(max(after - part.start, 0), last - part.start)]

    def types(self, after: int, last: int) -> list[EventType]:
        """Their types."""
        parts = self._with(after, last)
        if len(parts) == 1:
            return parts[0].types(after - parts[0].start, last - parts[0].start)
        return [each for part in parts for each in part.types(max(after - part.start, 0), last - part.start)]

    def _with(self, after: int, last: int) -> Sequence[Part]:
        """The parts that have some of these."""
        tail = self._parts[-1:]
        if tail and tail[0].start <= after < tail[0].end:
            return tail if after < last else ()
        last = min(last, self._count)
        if after >= last:
            return ()
        first = bisect_right(self._parts, after, key=_start) - 1
        return self._parts[first : bisect_right(self._parts, last - 1, key=_start)]

    def cut(self, count: int) -> None:
        """Keep so many."""
        while self._parts and self._parts[-1].start >= count:
            self._parts.pop()
        if count < self._count:
            self._parts[-1].cut(count - self._parts[-1].start)


_start = attrgetter("start")
