"""Readers of a run, in this process and on other replicas.

Rule: a reader on another replica counts like a local one. Its replica reports it regularly. When the reports stop, the
reader no longer counts.
"""

from agui_container.ports import Timer

WATCH_SECONDS = 2.0
"""Shortest pause between two reports of a reader to the run's replica; twice as long while the run is silent. A grace
that is shorter than the pause ends before a report can stop it."""

REPORT_VALID_SECONDS = 6.0
"""Time that a reader on another replica counts after a report. It exceeds the pause, because reports may be late."""


class Presence:
    """The readers of one run."""

    __slots__ = ("_remote", "grace", "local")

    def __init__(self) -> None:
        self.local = 0
        """Readers of this process."""
        self.grace: Timer | None = None
        """Timer that cancels the run; set while the run has no reader in this process."""
        self._remote: dict[str, float] | None = None

    def add_local(self) -> None:
        """Add a reader of this process and stop the timer."""
        self.local += 1
        if self.grace is not None:
            self.grace.cancel()
            self.grace = None

    def remove_local(self) -> None:
        """Remove a reader of this process."""
        self.local -= 1

    def refresh_remote(self, reader: str, now: float) -> None:
        """Record a report of a reader on another replica. ``now`` is in Unix seconds."""
        self._remote = self._recent_remote(now) | {reader: now}

    def count(self, now: float) -> int:
        """Return the number of readers on all replicas."""
        return self.local + len(self._recent_remote(now))

    def is_abandoned(self, now: float) -> bool:
        """Return True if the run had a reader in this process and has none on any replica now."""
        return self.grace is not None and not self.count(now)

    def _recent_remote(self, now: float) -> dict[str, float]:
        return {reader: at for reader, at in (self._remote or {}).items() if now - at < REPORT_VALID_SECONDS}
