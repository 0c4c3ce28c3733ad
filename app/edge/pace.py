"""At most 250 frames in any second on one socket, AgentCore's limit, and no wait before that.

Rule: a lone event is never delayed. A burst is free up to ``BURST`` frames; then frames leave at ``RATE`` per second,
while the reader falls behind and its deltas merge.
"""

import asyncio
from collections.abc import Callable

RATE = 200.0
BURST = 50.0


class Pace:
    """A token bucket: ``BURST`` plus one second of ``RATE`` make 250.

    Args:
        now: monotonic seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._tokens = BURST
        self._filled_at = now()

    def delay(self) -> float:
        """Take a token; the seconds to wait until it is there."""
        now = self._now()
        self._tokens = min(BURST, self._tokens + (now - self._filled_at) * RATE) - 1
        self._filled_at = now
        return max(0.0, -self._tokens / RATE)

    async def wait(self) -> None:
        """Until the next frame may leave."""
        delay = self.delay()
        if delay > 0:
            await asyncio.sleep(delay)
