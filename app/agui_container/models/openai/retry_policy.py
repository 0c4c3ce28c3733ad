"""How long a server is waited for, and how often it is asked again."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime

from msgspec import Struct

from agui_container.models.openai.failures import ModelFailure


class RetryPolicy(Struct, frozen=True):
    """Timeouts of a call, and retries of a call that has given nothing yet; all in seconds.

    Attributes:
        connect: to reach the server.
        write: to send a piece of the request.
        read: between two pieces of the answer; models think, and local ones read a long prompt first.
        retries: how often a call is made again.
        first: the wait before the first retry; each later one doubles, and is shortened by up to half at random.
        longest: the longest wait; a server that asks for more is not asked again, because nobody waits that long.
        jitter: gives a number from 0 to 1.
        sleep: waits.
    """

    connect: float = 10.0
    write: float = 60.0
    read: float = 300.0
    retries: int = 2
    first: float = 0.5
    longest: float = 20.0
    jitter: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def wait(self, failure: ModelFailure, attempt: int) -> float | None:
        """Seconds until the next attempt after ``try_decision`` (from 0); None for giving up."""
        if not failure.retry or attempt >= self.retries:
            return None
        if failure.wait is not None:
            return failure.wait if failure.wait <= self.longest else None
        return min(self.first * 2.0**attempt, self.longest) * (1 - self.jitter() / 2)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The wait that a server asks for: milliseconds, seconds or a date, which is read by the server's own clock."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if seconds >= 0:  # and a number
            return seconds
    try:
        until, now = (parsedate_to_datetime(headers.get(name, "")) for name in ("retry-after", "date"))
        return max(0.0, (until - now).total_seconds())
    except (TypeError, ValueError):
        return None
