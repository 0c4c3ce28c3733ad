"""Health of the process for ``/ping``: ready, busy, and the time of the last change.

Rule: the time changes only when the status does. A timestamp that moves on every ping keeps an idle AgentCore session
alive for hours; one that never moves gets a busy session reaped (docs/behind-agentcore.md).

Rule: ``LoopMonitor`` does not wake an idle process. Its measurement ends at once, because the platform may freeze an
idle process. Time for which SIGSTOP stops a busy one is no delay of its code.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from agui_container.log_values import format_fields
from agui_container.ports import Clock
from agui_container.telemetry.instruments import LOOP_LAG

INTERVAL_SECONDS = 0.1
"""Pause between two measurements while the process is busy. A block that is shorter than this is not seen at all."""

BLOCKED_SECONDS = 0.5
"""Delay of a timer that is logged. Every reader of the process has waited for as long."""

SHOWN_RUNS = 5
"""Number of runs that a line names. The count is complete."""

logger = logging.getLogger(__name__)


class Health:
    """Health of one process, ``ready`` after the initialisation. ``RunRegistry`` reports the open work."""

    def __init__(self, clock: Clock, has_other_work: Callable[[], bool] = lambda: False) -> None:
        self._clock = clock
        self._has_other_work = has_other_work
        self._has_own_work = False
        self.ready = False
        self.started_at: float | None = None
        self.is_busy = False
        """True while there is open work, as far as ``update`` and ``report`` know."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when the process becomes busy, or idle."""
        self._changed_at = 0

    def start(self) -> None:
        self.ready = True
        self.started_at = self._clock.time()
        self._changed_at = int(self._clock.time())

    def update(self, *, busy: bool) -> None:
        """Say if the engine has open work. The time changes only if the status does."""
        if busy != self._has_own_work:
            self._has_own_work = busy
            self._refresh()

    def _refresh(self) -> None:
        busy, now = self._has_own_work or self._has_other_work(), int(self._clock.time())
        if busy != self.is_busy:
            self.is_busy, self._changed_at = busy, now
            self.on_change()
        self._changed_at = min(self._changed_at, now)  # the clock may have been set back

    def report(self) -> dict[str, str | int]:
        """Return the body of ``/ping`` in AgentCore's spelling. ``time_of_last_update`` is in Unix seconds."""
        self._refresh()
        return {"status": "HealthyBusy" if self.is_busy else "Healthy", "time_of_last_update": self._changed_at}


class LoopMonitor:
    """Measures how late a timer of the event loop is, for metrics, and warns of code that blocks it."""

    def __init__(
        self, health: Health, open_run_ids: Callable[[], list[str]], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._health = health
        self._open_run_ids = open_run_ids
        self._monotonic = monotonic
        self._timer: asyncio.TimerHandle | None = None
        """Set while the process is busy."""
        self._due_at = 0.0
        self._runs: Sequence[str] = ()

    def forgive_stop(self) -> None:
        """Count no time before now as a delay. A signal handler calls this when a stopped process continues."""
        self._due_at = max(self._due_at, self._monotonic())

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
        was_busy = self._timer is not None
        self._stop()
        if self._health.is_busy:
            self._start()
        elif was_busy and (delay := self._monotonic() - self._due_at) > 0:  # a run ended in the step that blocked
            self._record(delay)

    def _start(self) -> None:
        self._runs = self._open_run_ids()[:SHOWN_RUNS]  # now, because a run may end in the step that blocks
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
        still_open = self._open_run_ids()
        run_ids = dict.fromkeys([*runs, *still_open[:SHOWN_RUNS]])
        fields = {"seconds": f"{delay:.1f}", "open_runs": len(still_open), "runs": ",".join(run_ids)}
        logger.warning("event loop blocked %s", format_fields(fields))
