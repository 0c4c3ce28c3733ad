"""Pacing of outgoing WebSocket frames.

Rule: a connection sends at most 250 frames in any second, because AgentCore closes one that sends more.

Source: AgentCore's limits, ``bedrock-agentcore-limits`` (docs/architecture.md).
"""

import asyncio
from collections.abc import Callable

from agui_container.runtime.token_bucket import TokenBucket

RATE = 200.0
"""Frames per second after a burst."""

BURST = 49.0
"""Frames that may leave without delay."""


class RateLimiter:
    """Token bucket for outgoing frames. ``BURST``, one second of ``RATE`` and one delayed frame add up to 250.

    Args:
        now: clock that returns monotonic seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.delay = TokenBucket(RATE, BURST, now).delay

    async def wait(self) -> None:
        """Wait until a frame may leave. A token is consumed only when the wait is over."""
        while (delay := self.delay()) > 0:  # noqa: ASYNC110 - tokens depend on the time alone, so no event can signal one
            await asyncio.sleep(delay)
