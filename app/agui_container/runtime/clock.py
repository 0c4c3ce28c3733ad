"""The real time, and the event loop's timers."""

import asyncio
import time
from collections.abc import Callable


class SystemClock:
    """Implements ``ports.Clock``."""

    def time(self) -> float:
        """Seconds since the Unix epoch."""
        return time.time()

    def call_later(self, delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Call ``callback`` on the event loop after ``delay`` seconds."""
        return asyncio.get_running_loop().call_later(delay, callback)
