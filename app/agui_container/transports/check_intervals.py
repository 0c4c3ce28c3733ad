"""Intervals in which waiting clients check the store, because another replica tells nobody of its changes.

Rule: all clients of a caller together check at most ``MAX_CHECKS`` times a second. If more of them wait, each one
checks less often. Otherwise one caller could keep the store busy with clients that wait for nothing.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

MAX_CHECKS = 50
"""Checks of one caller in a second."""


class CheckIntervals:
    """Clients that wait, by account, and the intervals between their checks."""

    def __init__(self) -> None:
        self._waiting = Counter[str]()

    @contextmanager
    def wait(self, account: str, shortest: float) -> Iterator[float]:
        """Count a client that waits until the end of the block.

        Yields:
            The seconds until the client may check, ``shortest`` at least.
        """
        self._waiting[account] += 1
        try:
            yield max(shortest, self._waiting[account] / MAX_CHECKS)
        finally:
            self._waiting[account] -= 1
            if not self._waiting[account]:
                del self._waiting[account]


check_intervals = CheckIntervals()
"""The waiting clients of this process."""
