"""Figures of the platform, and the clock that shortens its waiting.

Rule: every figure of AgentCore stands here. A time that the platform spends waiting passes ``time_factor`` times as
fast. A time in which the container has work to do (start, answer a ping, end) and a rate are those of the real clock,
because the container is no faster than it is.

Sources: quotas of AgentCore and its lifecycle settings (devguide ``bedrock-agentcore-limits``,
``runtime-lifecycle-settings``, ``runtime-v2-optimize``).
"""

import asyncio
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlatformLimits:
    """Limits of the platform. Times are seconds.

    Attributes:
        idle_seconds: ``idleRuntimeSessionTimeout``.
        lifetime_seconds: ``maxLifetime``, which never starts again.
        ping_seconds: pause between two pings of a session.
        sync_seconds: longest answer that is no stream, and longest wait for the head of any answer.
        stream_seconds: longest stream, over SSE and WebSocket.
        start_seconds: real time in which ``/ping`` must become healthy.
        ping_answer_seconds: real time for the answer to one ping. AgentCore does not tell its own.
        failed_pings: pings in a row that may fail before the session ends. AgentCore does not tell its own.
        stop_seconds: real time between SIGTERM and SIGKILL.
        payload_bytes: bytes of a request's body.
        frame_bytes: bytes of one WebSocket frame, in both directions.
        frames_per_second: WebSocket frames of one connection in a real second, in each direction.
        sessions: sessions at the same time.
        new_sessions_per_second: sessions that may begin in one real second.
        requests_per_second: requests of the data plane in one real second.
    """

    idle_seconds: float = 900.0
    lifetime_seconds: float = 28_800.0
    ping_seconds: float = 2.0
    sync_seconds: float = 900.0
    stream_seconds: float = 3600.0
    start_seconds: float = 120.0
    ping_answer_seconds: float = 5.0
    failed_pings: int = 3
    stop_seconds: float = 15.0
    payload_bytes: int = 100_000_000
    frame_bytes: int = 65_536
    frames_per_second: int = 250
    sessions: int = 2500
    new_sessions_per_second: int = 25
    requests_per_second: int = 1000


class PlatformClock:
    """Time of the platform: the real one, ``factor`` times as fast.

    Args:
        factor: seconds of the platform in one real second.
    """

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def now(self) -> float:
        """Return seconds of the platform since some moment."""
        return time.monotonic() * self.factor

    def timeout(self, seconds: float) -> asyncio.Timeout:
        """Return a timeout of that many seconds of the platform."""
        return asyncio.timeout(max(0.0, seconds) / self.factor)
