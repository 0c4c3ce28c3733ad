"""What ``/ping`` says: ready or not, busy or not, and since when.

Rule: the time changes only when the status does. A timestamp that moves on every ping keeps an idle AgentCore session
alive for hours; one that never moves gets a busy session reaped (docs/architecture.md).
"""

from agui_container.ports import Clock


class Health:
    """The process's health, told by whoever knows of open work."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ready = False
        self.started_at: float | None = None
        """Unix seconds of the end of initialisation."""
        self._busy = False
        self._changed_at = 0

    def start(self) -> None:
        """Initialisation is done."""
        self.ready = True
        self.started_at = self._clock.time()
        self._changed_at = int(self._clock.time())

    def update(self, *, busy: bool) -> None:
        """Stamp a transition; anything else changes nothing."""
        if busy != self._busy:
            self._busy = busy
            self._changed_at = int(self._clock.time())

    def report(self) -> dict[str, str | int]:
        """The body of ``/ping`` in AgentCore's spelling. ``time_of_last_update`` is in Unix seconds."""
        return {"status": "HealthyBusy" if self._busy else "Healthy", "time_of_last_update": self._changed_at}
