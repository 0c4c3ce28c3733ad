"""The clock of production, and one that stands still while the process is frozen.

Rule: a platform may freeze a process at any time, and no clock of the operating system says so. While the clock runs, a
thread reads it in short steps. Of a long step only the time counts in which the process computed: for the rest, the
process was frozen. Code that waits in the main thread does not stop the steps.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STEP_SECONDS = 0.1
"""Pause between two readings of the thread."""

LONG_STEP_SECONDS = 0.5
"""A longer step is one in which the process was frozen. A busy machine may delay a thread for less."""


class SystemClock:
    """``Clock`` of the operating system and the event loop."""

    def time(self) -> float:
        return time.time()

    def call_later(self, delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay, callback)


class AwakeClock:
    """The time for which this process was awake, as long as ``running`` is entered."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        process_time: Callable[[], float] = time.process_time,
    ) -> None:
        self._monotonic = monotonic
        self._process_time = process_time
        self._lock = threading.Lock()
        self._awake, self._last, self._last_computed = 0.0, 0.0, 0.0
        self._is_running, self._is_closed = threading.Event(), False
        self._thread: threading.Thread | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        with self._lock:
            self._last, self._last_computed = self._monotonic(), self._process_time()
        self._is_running.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="awake clock", daemon=True)
            self._thread.start()
        try:
            yield
        finally:
            self._is_running.clear()

    def read(self) -> tuple[float, float]:
        """Return the time of the system, and the time for which the process was awake. Any thread may ask."""
        with self._lock:
            now, computed = self._monotonic(), self._process_time()
            elapsed = now - self._last
            self._awake += elapsed if elapsed <= LONG_STEP_SECONDS else min(elapsed, computed - self._last_computed)
            self._last, self._last_computed = now, computed
            return now, self._awake

    def close(self) -> None:
        self._is_closed = True
        self._is_running.set()

    def _run(self) -> None:
        while True:
            self._is_running.wait()
            if self._is_closed:
                return
            self.read()
            time.sleep(STEP_SECONDS)
