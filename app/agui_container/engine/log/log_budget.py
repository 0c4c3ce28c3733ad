"""Memory that the logs of a process may hold: each one, and all together."""


class LogBudget:
    """Limits for event logs, and what they hold.

    Args:
        run_bytes: of one run's events. The event that exceeds it is kept.
        all_bytes: of the events of all runs, open and ended, in every encoding.

    Attributes:
        used_bytes: what all logs hold.
        kept_bytes: the part of it that logs of ended runs hold.
    """

    def __init__(self, run_bytes: int, all_bytes: int) -> None:
        self.run_bytes = run_bytes
        self.all_bytes = all_bytes
        self.used_bytes = 0
        self.kept_bytes = 0
