"""Warnings about code that blocks the event loop while runs are open.

Rule: an idle process is not woken. Its measurement ends at once, because the platform may freeze an idle process.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

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

    async def run(self) -> None:
        while True:
            if self._health.is_busy:
                await self._measure()
            else:
                await self._health.wait_for_change()

    async def _measure(self) -> None:
        runs = self._registry.open_run_ids(SHOWN_RUNS)  # now, because a run may end in the step that blocks
        began = self._monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(INTERVAL_SECONDS):
                await self._health.wait_for_change()
        delay = max(0.0, self._monotonic() - began - INTERVAL_SECONDS)
        LOOP_LAG.record(delay, {})
        if delay > BLOCKED_SECONDS:
            self._warn(delay, runs)

    def _warn(self, delay: float, runs: list[str]) -> None:
        run_ids = dict.fromkeys([*runs, *self._registry.open_run_ids(SHOWN_RUNS)])
        fields = {"seconds": f"{delay:.1f}", "open_runs": self._registry.open_count, "runs": ",".join(run_ids)}
        logger.warning("event loop blocked %s", format_fields(fields))
