"""Pauses between attempts to connect. They double and vary at random, and after a limit the work fails."""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from agui_client.errors import ConnectionLostError


@dataclass(frozen=True, slots=True)
class Reconnect:
    """A failed attempt to connect, before the next one.

    Attributes:
        attempt: failed connections in a row, from 1.
        delay: seconds until the next attempt.
        cause: the failure.
    """

    attempt: int
    delay: float
    cause: Exception


@dataclass(frozen=True, slots=True)
class Retry:
    """Treatment of connections that fail. Times are seconds.

    Attributes:
        initial_delay: longest first pause.
        max_delay: longest pause.
        give_up_after: time without any progress after which ``ConnectionLostError`` is raised.
        cancel_timeout: how long a cancelled run may take to end.
        on_reconnect: called before each pause.
    """

    initial_delay: float = 0.25
    max_delay: float = 5.0
    give_up_after: float = 60.0
    cancel_timeout: float = 5.0
    on_reconnect: Callable[[Reconnect], None] | None = None


class Backoff:
    """The pauses of one piece of work."""

    def __init__(self, retry: Retry) -> None:
        self._retry = retry
        self._attempts = 0
        self._failing_since = 0.0

    @property
    def is_retrying(self) -> bool:
        """True if a connection has failed and none has made progress since."""
        return self._attempts > 0

    def reset(self) -> None:
        """Begin with the first pause again, because a connection made progress."""
        self._attempts = 0

    async def pause(self, cause: Exception, wake: asyncio.Event | None = None) -> None:
        """Wait before the next attempt. ``wake`` ends the pause, unless it was set before.

        Raises:
            ConnectionLostError: the last progress is too long ago.
        """
        self._attempts += 1
        if self._attempts == 1:
            self._failing_since = time.monotonic()
        if time.monotonic() - self._failing_since >= self._retry.give_up_after:
            duration = f" for {self._retry.give_up_after:g} s" if self._retry.give_up_after else ""
            message = f"No connection{duration}: {cause}"
            raise ConnectionLostError(message, self._attempts) from cause
        longest = min(self._retry.max_delay, self._retry.initial_delay * 2 ** min(self._attempts - 1, 30))
        # Half of the pause is fixed, so that clients of a server that restarts do not all connect at the same moment.
        delay = longest * random.uniform(0.5, 1)  # noqa: S311 - no secret
        if self._retry.on_reconnect is not None:
            self._retry.on_reconnect(Reconnect(self._attempts, delay, cause))
        if wake is None or wake.is_set():
            await asyncio.sleep(delay)
            return
        try:
            async with asyncio.timeout(delay):
                await wake.wait()
        except TimeoutError:
            pass
