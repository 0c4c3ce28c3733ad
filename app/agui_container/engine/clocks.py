"""The clock of production."""

import asyncio
import time
from collections.abc import Callable


class SystemClock:
    """``Clock`` of the operating system and the event loop."""

    def time(self) -> float:
        return time.time()

    def call_later(self, delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay, callback)
