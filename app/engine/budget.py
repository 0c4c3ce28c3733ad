"""How much the logs of a process may hold: each one, and all together.

Rule: what is counted is what readers are sent, the same however a log holds it.
"""


class Budget:
    """Bytes that logs may hold, and those that they do.

    Args:
        each: encoded events of one run, and at most the deltas of one burst more.
        together: encoded events of all runs, open and kept.
    """

    def __init__(self, each: int, together: int) -> None:
        self.each = each
        self.together = together
        self.used = 0
        self.kept = 0
        """The part of ``used`` that logs of ended runs hold."""
