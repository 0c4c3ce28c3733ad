"""The real time, and timers of which few ever come due.

Rule: runs may all take the same time, so what each waits for comes due in the order in which it was set, and the event
loop has one timer for all of one delay: one for each was half a KiB of a run. Each is called as its own timer would: at
its time, and in the context of who has set it.
"""

import asyncio
import time
from collections.abc import Callable
from contextvars import Context, copy_context

EXACT = 0.001
"""Seconds: uvloop's timers count in milliseconds, so what is due within one is due."""


class Alarm:
    """A callback that is due at a time of the event loop's."""

    __slots__ = ("_callback", "_context", "_line", "due")

    def __init__(self, line: "Line", due: float, callback: Callable[[], None]) -> None:
        self._line = line
        self._callback = callback
        self._context = copy_context()
        self.due = due

    def cancel(self) -> None:
        """Call it off; harmless when it has already run."""
        self._line.leave(self)

    def ring(self) -> None:
        """Call back. Raises what that raises."""
        self._context.run(self._callback)


class Line:
    """The alarms of one delay, the first one first.

    Args:
        delay: in seconds.
        lines: has this one as long as anybody waits in it.
        loop: has its timer.
    """

    def __init__(self, delay: float, lines: "dict[float, Line]", loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._delay = delay
        self._lines = lines
        self._waiting: dict[Alarm, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def join(self, callback: Callable[[], None]) -> Alarm:
        """One more, behind all others."""
        alarm = Alarm(self, self.loop.time() + self._delay, callback)
        self._waiting[alarm] = None
        if self._timer is None:
            self._set(alarm.due)
        return alarm

    def leave(self, alarm: Alarm) -> None:
        """It does not wait any more. Harmless when called again."""
        if alarm in self._waiting:
            del self._waiting[alarm]
            if not self._waiting:
                self._end()

    def _end(self) -> None:
        if self._lines.get(self._delay) is self:
            del self._lines[self._delay]
        if self._timer is not None:
            self._timer.cancel()

    def _set(self, due: float) -> None:
        self._timer = self.loop.call_at(due, self._ring, context=Context())

    def _ring(self) -> None:
        """Call back all that are due: who was first may have left since the timer was set."""
        now = self.loop.time() + EXACT
        for alarm in tuple(self._waiting):
            if alarm.due > now:
                break
            if alarm in self._waiting:  # none before it has called it off
                self.leave(alarm)
                self._call(alarm)
        if self._waiting:
            self._set(next(iter(self._waiting)).due)

    def _call(self, alarm: Alarm) -> None:
        try:
            alarm.ring()
        except Exception as error:  # noqa: BLE001 - the others have their turn, as with timers of their own
            self.loop.call_exception_handler({"message": "a timer's callback failed", "exception": error})


class SystemClock:
    """Implements ``ports.Clock``: the real time, and the running event loop's timers."""

    def __init__(self) -> None:
        self._lines: dict[float, Line] = {}

    def time(self) -> float:
        """Seconds since the Unix epoch."""
        return time.time()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Alarm:
        """Run ``callback`` on the event loop after ``delay`` seconds."""
        loop = asyncio.get_running_loop()
        line = self._lines.get(delay)
        if line is None or line.loop is not loop:
            line = self._lines[delay] = Line(delay, self._lines, loop)
        return line.join(callback)
