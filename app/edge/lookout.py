"""One look at all streams of a process, again and again while there are any.

Rule: a stream has no timer of its own, which would be a twentieth of what it takes in memory. What it must notice may
be late by two looks.
"""

import asyncio
from typing import Protocol

LOOK_SECONDS = 1.0
"""Between two looks at most."""


class Watched(Protocol):
    """What is looked at."""

    def look(self, now: float) -> None:
        """Notice what is due. ``now`` is the event loop's time, in seconds."""


class Lookout:
    """The streams that are open.

    Args:
        keepalive: seconds of silence before a comment; no look is later.
    """

    def __init__(self, keepalive: float) -> None:
        self.keepalive = keepalive
        self._open: set[Watched] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        """Will have us look again. One that was closed before that does not count: an application may outlive it."""

    def watch(self, stream: Watched) -> None:
        """Look at it from now on."""
        self._open.add(stream)
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._wait(loop)

    def leave(self, stream: Watched) -> None:
        """Look at it no more. Harmless when called again."""
        self._open.discard(stream)

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        loop.call_later(min(self.keepalive, LOOK_SECONDS), self._look)

    def _look(self) -> None:
        self._loop, loop = None, asyncio.get_running_loop()
        if self._open:
            self._wait(loop)
        now = loop.time()
        for stream in tuple(self._open):
            stream.look(now)
