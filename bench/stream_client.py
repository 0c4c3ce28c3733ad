"""Many streams at once: a client on uvloop's protocols, without a task per stream.

Rule: data is timed on arrival, before any other work.
"""

import asyncio
import re
import resource
import time
from array import array
from typing import cast

from bench.client import DELTA, END, SECONDS, get, post, run_body

STAMP = re.compile(rb'"at (\d+)"')
LONGEST = 40
"""Bytes of a stamp with its quotes, which two reads may share."""


class Watch:
    """Counts and times of all streams of one measurement."""

    def __init__(self) -> None:
        self.deltas = 0
        self.delays = array("q")


class MeasuredStream(asyncio.Protocol):
    """One request whose answer is counted, and timed where it carries stamps."""

    def __init__(self, request: bytes, watch: Watch) -> None:
        self._request = request
        self._watch = watch
        self._tail = b""
        self._marks = b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        cast("asyncio.Transport", transport).write(self._request)  # uvloop's is none by its class

    def data_received(self, data: bytes) -> None:
        """Count, and time."""
        now = time.monotonic_ns()
        if not self.opened.done():
            self.opened.set_result(None)
        self._time(data, now)
        whole = self._marks + data
        self._watch.deltas += whole.count(DELTA)
        self._marks = whole[-len(DELTA) + 1 :]
        if whole.endswith(END) and not self.ended.done():
            self.ended.set_result(None)

    def _time(self, data: bytes, now: int) -> None:
        whole = self._tail + data
        position = 0
        for found in STAMP.finditer(whole):
            self._watch.delays.append(now - int(found[1]))
            position = found.end()
        self._tail = whole[max(position, len(whole) - LONGEST) :]

    def connection_lost(self, _: Exception | None) -> None:
        """Resolve the futures: no more data will arrive."""
        for future in (self.opened, self.ended):
            if not future.done():
                future.set_result(None)


class StreamGroup:
    """Streams to one server."""

    def __init__(self, port: int) -> None:
        self.watch = Watch()
        self._port = port
        self._streams: list[tuple[asyncio.BaseTransport, MeasuredStream]] = []

    async def open(self, count: int, text: str, over: float) -> None:
        """Start ``count`` new runs within ``over`` seconds."""
        for _ in range(count):
            await self.request(post(run_body(text)))
            await asyncio.sleep(over / count)

    async def request(self, request: bytes) -> MeasuredStream:
        """One more stream."""
        loop = asyncio.get_running_loop()
        made = await loop.create_connection(lambda: MeasuredStream(request, self.watch), "127.0.0.1", self._port)
        self._streams.append(made)
        return made[1]

    async def attach(self, thread: str, run_id: str) -> None:
        """One more reader of a run, from its start."""
        await self.request(get(f"/runs/{run_id}/events?threadId={thread}"))

    async def wait_ended(self) -> None:
        """Wait until every stream has ended."""
        async with asyncio.timeout(SECONDS):
            await asyncio.gather(*(stream.ended for _, stream in self._streams))

    def close(self) -> None:
        """Hang up."""
        for transport, _ in self._streams:
            transport.close()


def many_files() -> None:
    """Let this process, and what it starts, have as many sockets as the machine allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
