"""Health of the process for ``/ping``: ready, busy, and the time of the last change.

Rule: the time changes only when the status does. A timestamp that moves on every ping keeps an idle AgentCore session
alive for hours; one that never moves gets a busy session reaped (docs/architecture.md).
"""

from collections.abc import Callable

from agui_container.ports import Clock


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
