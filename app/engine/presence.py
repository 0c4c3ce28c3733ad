"""Who reads a run: readers of this process, and those of other replicas, who say so now and then.

Rule: a reader is a reader wherever it is. One elsewhere that has been silent for too long has left.
"""

from app.ports import Timer

WATCH_SECONDS = 2.0
"""Between two words of a reader to the replica that runs what it reads, at least; twice that where the run is quiet. A
grace must be longer to be held up."""

HEARD_SECONDS = 6.0
"""How long a reader elsewhere counts after a word of it: it may be waiting for the bus when the next one is due."""


class Presence:
    """The readers of one run."""

    __slots__ = ("_elsewhere", "grace", "here")

    def __init__(self) -> None:
        self.here = 0
        """Readers of this process."""
        self.grace: Timer | None = None
        """Ends the run; set while nobody reads it here."""
        self._elsewhere: dict[str, float] | None = None

    def enter(self) -> None:
        """One more reader of this process."""
        self.here += 1
        if self.grace is not None:
            self.grace.cancel()
            self.grace = None

    def leave(self) -> None:
        """One less."""
        self.here -= 1

    def hear(self, reader: str, now: float) -> None:
        """A reader of another replica is there."""
        self._elsewhere = self._lately(now) | {reader: now}

    def size(self, now: float) -> int:
        """How many there are, here and elsewhere."""
        return self.here + len(self._lately(now))

    def is_gone(self, now: float) -> bool:
        """Whether there was one here, and there is none now, here or elsewhere."""
        return self.grace is not None and not self.size(now)

    def _lately(self, now: float) -> dict[str, float]:
        return {who: at for who, at in (self._elsewhere or {}).items() if now - at < HEARD_SECONDS}
