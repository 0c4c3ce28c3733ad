"""The clock of production: system time and the event loop's timers."""

import asyncio
import time
from collections.abc import Callable


class SystemClock:
    """``Clock`` of the operating system and the event loop."""

    def time(self) -> float:
        """Return the seconds since the Unix epoch."""
        return time.time()

    def call_later(self, delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Call ``callback`` on the event loop after ``delay`` seconds."""
        return asyncio.get_running_loop().call_later(delay, callback)
