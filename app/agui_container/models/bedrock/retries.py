"""Retries of a Bedrock call.

Rule: a call is retried only before its first delta, because a client cannot take back text that it has shown.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable

from agui_container.models.bedrock.failures import Failure

Pause = Callable[[int], Awaitable[None]]
"""Coroutine function that waits after attempt number N (from 1) has failed."""

FIRST_PAUSE, MAX_PAUSE = 0.5, 8.0
"""Seconds."""


async def backoff(attempt: int) -> None:
    """Wait twice as long after each attempt, shortened by up to half at random."""
    pause = min(FIRST_PAUSE * 2 ** (attempt - 1), MAX_PAUSE)
    await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, hides nothing


def may_retry(failure: Failure, attempt: int, max_attempts: int, *, has_output: bool) -> bool:
    """Return True if a call may be repeated after ``attempt`` (from 1) has failed."""
    return failure.is_retryable and not has_output and attempt < max_attempts
