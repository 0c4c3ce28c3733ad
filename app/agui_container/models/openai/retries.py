"""Timeouts and retries of calls to a model server.

Rule: a call is retried only before its first delta, because a client cannot take back text that it has shown.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable

from msgspec import Struct

from agui_container.models.openai.failures import ModelFailure


class RetryPolicy(Struct, frozen=True):
    """Timeouts of a call, and retries of a call that has yielded no delta. All times are in seconds.

    Attributes:
        connect: limit for connecting.
        write: limit for sending one piece of the request.
        read: limit between two pieces of the answer; models may think for minutes before the first one.
        retries: largest number of retries of one call.
        first: wait before the first retry. It doubles with each retry and is shortened by up to half at random.
        longest: longest wait. If the server asks for more, the call is not retried.
        jitter: returns a random number from 0 to 1.
        sleep: coroutine function that waits.
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
        """Return the seconds to wait after ``attempt`` (from 0) has failed, or None if the call is not retried."""
        if not failure.is_retryable or attempt >= self.retries:
            return None
        if failure.retry_after is not None:
            return failure.retry_after if failure.retry_after <= self.longest else None
        return min(self.first * 2.0**attempt, self.longest) * (1 - self.jitter() / 2)
