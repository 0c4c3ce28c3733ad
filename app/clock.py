"""The real time, and timers of which few ever come due.

Rule: runs may all take the same time, so what each waits for comes due in the order in which it was set, and the event
loop has one timer for all of one delay: one for each was half a KiB of a run, and a fiftieth of a short one.
"""

import asyncio
import time
from collections.abc import Callable


class Alarm:
    """A callback that is due at a time of the event loop's."""

    __slots__ = ("_line", "callback", "due")

    def __init__(self, line: "Line", due: float, callback: Callable[[], None]) -> None:
        self._line = line
        self.due = due
        self.callback = callback

    def cancel(self) -> None:
        """Call it off; harmless when it has already run."""
        self._line.leave(self)


class Line:
    """The alarms of one delay, the first one first.

    Args:
        delay: in seconds.
        lines: has this one as long as anybody waits in it.
    """

    def __init__(self, delay: float, lines: "dict[float, Line]") -> None:
        self._delay = delay
        self._lines = lines
        self._waiting: dict[Alarm, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def join(self, callback: Callable[[], None]) -> Alarm:
        """One more, behind all others."""
        alarm = Alarm(self, asyncio.get_running_loop().time() + self._delay, callback)
        self._waiting[alarm] = None
        if self._timer is None:
            self._set()
        return alarm

    def leave(self, alarm: Alarm) -> None:
        """It does not wait any more. Harmless when called again."""
        if alarm in self._waiting:
            del self._waiting[alarm]
            if not self._waiting:
                self._end()

    def _end(self) -> None:
        del self._lines[self._delay]
        if self._timer is not None:
            self._timer.cancel()

    def _set(self) -> None:
        first = next(iter(self._waiting))
        self._timer = asyncio.get_running_loop().call_at(first.due, self._ring)

    def _ring(self) -> None:
        """One at a time, so that what one raises is heard of and keeps no other from its turn."""
        first = next(iter(self._waiting))
        if first.due > asyncio.get_running_loop().time():  # who was first has left since the timer was set
            self._set()
            return
        self.leave(first)
        if self._waiting:
            self._set()
        first.callback()


class SystemClock:
    """Implements ``ports.Clock``: the real time, and the running event loop's timers."""

    def __init__(self) -> None:
        self._lines: dict[float, Line] = {}

    def time(self) -> float:
        """Seconds since the Unix epoch."""
        return time.time()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Alarm:
        """Run ``callback`` on the event loop after ``delay`` seconds."""
        line = self._lines.get(delay)
        if line is None:
            line = self._lines[delay] = Line(delay, self._lines)
        return line.join(callback)
