"""Warnings about code that blocks the event loop while runs are open.

Rule: an idle process is not woken. Its timers are also late whenever the platform freezes it, which is no fault.
"""

import asyncio
import logging
import time

from agui_container.engine.health import Health
from agui_container.engine.registry.registry import RunRegistry
from agui_container.runtime.log_values import format_fields
from agui_container.telemetry import LOOP_LAG

INTERVAL_SECONDS = 0.1
"""Pause between two measurements while the process is busy. A block that is shorter than this is not seen at all."""

BLOCKED_SECONDS = 0.5
"""Delay of a timer that is logged. Every reader of the process has waited for as long."""

SHOWN_RUNS = 5
"""Number of runs that a line names. The count is complete."""

logger = logging.getLogger(__name__)


class LoopMonitor:
    """Measures how late a timer of the event loop is, for metrics and for the log.

    Args:
        health: the process is measured while it is busy.
        registry: the runs that a warning names.
    """

    def __init__(self, health: Health, registry: RunRegistry) -> None:
        self._health = health
        self._registry = registry

    async def run(self) -> None:
        """Measure until cancelled. The owner awaits this."""
        while True:
            await self._health.wait_busy()
            runs = self._registry.active_run_ids(SHOWN_RUNS)  # now, because a run may end in the step that blocks
            expected_at = time.monotonic() + INTERVAL_SECONDS
            await asyncio.sleep(INTERVAL_SECONDS)
            delay = time.monotonic() - expected_at
            LOOP_LAG.record(max(0.0, delay), {})
            if delay > BLOCKED_SECONDS:
                self._warn(delay, runs)

    def _warn(self, delay: float, runs: list[str]) -> None:
        run_ids = dict.fromkeys([*runs, *self._registry.active_run_ids(SHOWN_RUNS)])
        fields = {"seconds": f"{delay:.1f}", "open_runs": self._registry.open_count, "runs": ",".join(run_ids)}
        logger.warning("event loop blocked %s", format_fields(fields))
