"""Health of the process for ``/ping``: ready, busy, and the time of the last change.

Rule: the time changes only when the status does. A timestamp that moves on every ping keeps an idle AgentCore session
alive for hours; one that never moves gets a busy session reaped (docs/architecture.md).
"""

import asyncio
from collections.abc import Callable

from agui_container.ports import Clock


class Health:
    """Health of one process. ``RunRegistry`` reports the open work.

    Args:
        clock: source of time.
        has_other_work: True while the agent has open work that the engine does not know of.

    Attributes:
        ready: True after the end of initialisation.
        started_at: end of initialisation in Unix seconds, or None.
    """

    def __init__(self, clock: Clock, has_other_work: Callable[[], bool] = lambda: False) -> None:
        self._clock = clock
        self._has_other_work = has_other_work
        self._has_own_work = False
        self.ready = False
        self.started_at: float | None = None
        self._busy = asyncio.Event()
        self._changed_at = 0

    def start(self) -> None:
        """Set the process to ready, at the end of initialisation."""
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
        if busy != self._busy.is_set():
            (self._busy.set if busy else self._busy.clear)()
            self._changed_at = now
        self._changed_at = min(self._changed_at, now)  # the clock may have been set back

    async def wait_busy(self) -> None:
        """Wait until the process is busy."""
        await self._busy.wait()

    def report(self) -> dict[str, str | int]:
        """Return the body of ``/ping`` in AgentCore's spelling. ``time_of_last_update`` is in Unix seconds."""
        self._refresh()
        return {"status": "HealthyBusy" if self._busy.is_set() else "Healthy", "time_of_last_update": self._changed_at}
