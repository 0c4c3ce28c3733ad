"""One periodic check of all open streams of a process.

Rule: a stream has no timer of its own. An action that is due may happen up to two intervals late.
"""

import asyncio
from typing import Protocol

CHECK_SECONDS = 1.0
"""Longest interval between two checks."""


class MonitoredStream(Protocol):
    """A stream with periodic checks."""

    def check(self, now: float) -> None:
        """Perform the actions that are due. ``now`` is the event loop's time, in seconds."""


class StreamMonitor:
    """The open streams.

    Args:
        keepalive: seconds of silence before a stream sends a comment; the interval is never longer.
    """

    def __init__(self, keepalive: float) -> None:
        self.keepalive = keepalive
        self._streams: set[MonitoredStream] = set()
        self._scheduled_on: asyncio.AbstractEventLoop | None = None

    def add(self, stream: MonitoredStream) -> None:
        """Start checking a stream."""
        self._streams.add(stream)
        loop = asyncio.get_running_loop()
        if self._scheduled_on is not loop:  # an application may outlive an event loop that was closed
            self._schedule(loop)

    def remove(self, stream: MonitoredStream) -> None:
        """Stop checking a stream. Further calls have no effect."""
        self._streams.discard(stream)

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduled_on = loop
        loop.call_later(min(self.keepalive, CHECK_SECONDS), self._check)

    def _check(self) -> None:
        self._scheduled_on, loop = None, asyncio.get_running_loop()
        if self._streams:
            self._schedule(loop)
        now = loop.time()
        for stream in tuple(self._streams):
            stream.check(now)
