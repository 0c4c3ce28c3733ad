"""Token bucket: a rate with a burst."""

from collections.abc import Callable

ONE_TOKEN = 1 - 1e-6
"""Smallest amount that counts as a whole token. A sum of fractions can miss 1 by too little to sleep for."""


class TokenBucket:
    """Tokens that are refilled at a steady rate, up to ``burst``.

    Args:
        rate: tokens per second.
        burst: tokens of a full bucket, with which it begins.
        now: clock that returns seconds.
    """

    __slots__ = ("_burst", "_filled_at", "_now", "_rate", "_tokens")

    def __init__(self, rate: float, burst: float, now: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._now = now
        self._tokens = burst
        self._filled_at = now()

    def delay(self) -> float:
        """Return the seconds until a token is there. If the result is 0, one token is consumed."""
        self._refill()
        if self._tokens < ONE_TOKEN:
            return (1 - self._tokens) / self._rate
        self._tokens -= 1
        return 0.0

    @property
    def is_full(self) -> bool:
        """True if nothing was consumed lately."""
        self._refill()
        return self._tokens >= self._burst

    def _refill(self) -> None:
        now = self._now()
        elapsed = max(0.0, now - self._filled_at)  # the clock of the machine may be set back
        self._tokens = min(self._burst, self._tokens + elapsed * self._rate)
        self._filled_at = now
