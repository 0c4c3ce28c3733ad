"""Who reads a run: readers of this process, and those of other replicas, who say so now and then.

Rule: a reader is a reader wherever it is. One elsewhere that has been silent for too long has left.
"""

from agui_container.ports import Timer

WATCH_SECONDS = 2.0
"""Between two words of a reader to the replica that runs what it reads, at least; twice that where the run is quiet. A
grace must be longer to be held up."""

HEARD_SECONDS = 6.0
"""How long a reader elsewhere counts after a word of it: it may be waiting for the bus when the next one is due."""


class Presence:
    """The readers of one run."""

    __slots__ = ("_remote", "grace", "local")

    def __init__(self) -> None:
        self.local = 0
        """Readers of this process."""
        self.grace: Timer | None = None
        """Ends the run; set while nobody reads it here."""
        self._remote: dict[str, float] | None = None

    def add_local(self) -> None:
        """One more reader of this process."""
        self.local += 1
        if self.grace is not None:
            self.grace.cancel()
            self.grace = None

    def remove_local(self) -> None:
        """One less."""
        self.local -= 1

    def refresh_remote(self, reader: str, now: float) -> None:
        """A reader of another replica is there."""
        self._remote = self._recent_remote(now) | {reader: now}

    def count(self, now: float) -> int:
        """How many there are, here and elsewhere."""
        return self.local + len(self._recent_remote(now))

    def is_abandoned(self, now: float) -> bool:
        """Whether there was one here, and there is none now, here or elsewhere."""
        return self.grace is not None and not self.count(now)

    def _recent_remote(self, now: float) -> dict[str, float]:
        return {who: at for who, at in (self._remote or {}).items() if now - at < HEARD_SECONDS}
