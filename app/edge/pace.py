"""At most 250 frames in any second on one socket, AgentCore's limit, and no wait before that.

Rule: a lone event is never delayed. A burst is free up to ``BURST`` frames; then frames leave at ``RATE`` per second,
while the reader falls behind and its deltas merge.
"""

import asyncio
from collections.abc import Callable

RATE = 200.0
BURST = 49.0

ENOUGH = 1 - 1e-6
"""Of a token, to have it: what a sum of fractions lacks could be too little to wait for."""


class Pace:
    """A token bucket: ``BURST``, one second of ``RATE`` and a frame that is late on its way make 250.

    Args:
        now: monotonic seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._tokens = BURST
        self._filled_at = now()

    def delay(self) -> float:
        """The seconds until a frame may leave. If it may now, that takes a token."""
        now = self._now()
        self._tokens = min(BURST, self._tokens + (now - self._filled_at) * RATE)
        self._filled_at = now
        if self._tokens < ENOUGH:
            return (1 - self._tokens) / RATE
        self._tokens -= 1
        return 0.0

    async def wait(self) -> None:
        """Until the next frame leaves. Whoever wakes late has taken nothing in the meantime."""
        while (delay := self.delay()) > 0:  # noqa: ASYNC110 - a token is told by the time alone
            await asyncio.sleep(delay)
