"""Warnings about code that blocks the event loop while runs are open.

Rule: an idle process is not woken. Its measurement ends at once, because the platform may freeze an idle process.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from agui_container.engine.health import Health
from agui_container.engine.registry import RunRegistry
from agui_container.log_values import format_fields
from agui_container.telemetry import LOOP_LAG

INTERVAL_SECONDS = 0.1
"""Pause between two measurements while the process is busy. A block that is shorter than this is not seen at all."""

BLOCKED_SECONDS = 0.5
"""Delay of a timer that is logged. Every reader of the process has waited for as long."""

SHOWN_RUNS = 5
"""Number of runs that a line names. The count is complete."""

logger = logging.getLogger(__name__)


class LoopMonitor:
    """Measures how late a timer of the event loop is, for metrics and for the log."""

    def __init__(self, health: Health, registry: RunRegistry, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._health = health
        self._registry = registry
        self._monotonic = monotonic
        self._timer: asyncio.TimerHandle | None = None
        """Set while the process is busy."""
        self._due_at = 0.0
        self._runs: Sequence[str] = ()

    async def run(self) -> None:
        """Measure until this is cancelled."""
        self._loop = asyncio.get_running_loop()
        self._health.on_change = self._update
        try:
            self._update()
            await self._loop.create_future()
        finally:
            self._health.on_change = lambda: None
            self._stop()

    def _update(self) -> None:
        self._stop()
        if self._health.is_busy:
            self._start()
        elif self._due_at and (delay := self._monotonic() - self._due_at) > 0:  # a run ended in the step that blocked
            self._record(delay)

    def _start(self) -> None:
        self._runs = self._registry.open_run_ids(SHOWN_RUNS)  # now, because a run may end in the step that blocks
        self._due_at = self._monotonic() + INTERVAL_SECONDS
        self._timer = self._loop.call_later(INTERVAL_SECONDS, self._measure)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _measure(self) -> None:
        self._record(max(0.0, self._monotonic() - self._due_at))
        self._start()

    def _record(self, delay: float) -> None:
        LOOP_LAG.record(delay, {})
        if delay > BLOCKED_SECONDS:
            self._warn(delay, self._runs)

    def _warn(self, delay: float, runs: Sequence[str]) -> None:
        run_ids = dict.fromkeys([*runs, *self._registry.open_run_ids(SHOWN_RUNS)])
        fields = {"seconds": f"{delay:.1f}", "open_runs": self._registry.open_count, "runs": ",".join(run_ids)}
        logger.warning("event loop blocked %s", format_fields(fields))
