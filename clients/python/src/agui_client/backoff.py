"""Pauses between attempts to connect. They double and vary at random, and after a limit the work fails."""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
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
    """The pauses of one piece of work. ``wake`` ends a pause, unless it was set before."""

    def __init__(self, retry: Retry, place: str, wake: asyncio.Event | None = None) -> None:
        self._retry = retry
        self._place = place
        self._wake = wake
        self._cause: Exception | None = None
        self._attempts = 0
        self._failing_since = 0.0

    @property
    def is_retrying(self) -> bool:
        """True if a connection has failed and none has made progress since."""
        return self._attempts > 0

    def reset(self) -> None:
        """Begin with the first pause again, because a connection made progress."""
        self._attempts = 0

    def lost(self, duration: str) -> ConnectionLostError:
        """Return the error that says for how long there was no connection."""
        return ConnectionLostError(f"No connection to {self._place}{duration}: {self._cause}", self._attempts)

    async def pause(self, cause: Exception) -> None:
        """Wait before the next attempt. Raises ``ConnectionLostError`` if the last progress is too long ago."""
        retry, now, self._cause = self._retry, time.monotonic(), cause
        self._failing_since = self._failing_since if self._attempts else now
        self._attempts += 1
        if now - self._failing_since >= retry.give_up_after:
            raise self.lost(f" for {retry.give_up_after:g} s" if retry.give_up_after else "") from cause
        # Half of the pause is fixed, so that clients of a server that restarts do not all connect at the same moment.
        longest = min(retry.max_delay, retry.initial_delay * 2 ** min(self._attempts - 1, 30))
        delay = longest * random.uniform(0.5, 1)  # noqa: S311 - no secret
        if retry.on_reconnect is not None:
            retry.on_reconnect(Reconnect(self._attempts, delay, cause))
        end = asyncio.sleep(delay) if self._wake is None or self._wake.is_set() else self._wake.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await end
