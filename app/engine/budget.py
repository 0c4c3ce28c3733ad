"""How much the logs of a process may hold: each one, and all together.

Rule: what is counted is what readers are sent, the same however a log holds it.
"""


class Budget:
    """Bytes that logs may hold, and those that they do.

    Args:
        each: encoded events of one run, and at most the deltas of one burst more, or what the next ones may be long.
        together: encoded events of all runs, open and kept.
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
