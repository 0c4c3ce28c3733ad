"""How much the logs of a process may hold: each one, and all together.

Rule: what is counted is what readers are sent, the same however a log holds it.
"""


class Budget:
    """Bytes that logs may hold, and those that they do.

    Args:
        each: of one run's events. It may be exceeded by the deltas of one burst, or by those that came one by one since
            they were last weighed.
        together: of the events of all runs, open and kept, in whatever encodings.
    """

    def __init__(self, each: int, together: int) -> None:
        self.each = each
        self.together = together
        self.used = 0
        self.is_full = False
        """Whether that is more than they may."""
        self.kept = 0
        """The part of ``used`` that logs of ended runs hold."""

    def take(self, size: int) -> None:
        """So many more; less than none are given back."""
        self.used += size
        self.is_full = self.used > self.together
