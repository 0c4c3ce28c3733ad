"""A TCP relay between a client and its servers, which counts the events that pass, and cuts and stalls connections."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import cycle

EVENT = re.compile(rb'\{"type":"[A-Z_]+"')
"""The beginning of an event, in a frame of SSE and in one of a WebSocket."""

ASKS_CAPABILITIES = b'"type": "capabilities"'
CHUNK = 65_536
HEAD_END = b"\r\n\r\n"


class EventRelay:
    """Connections go to the servers in turn.

    Attributes:
        cuts: events of the next connections after which those are cut, in order. Other connections are not cut.
        within: bytes of the next event that still pass before a cut.
        refuses: count of the next connections that are closed at once.
        flows: cleared by a test to hold back all data.
    """

    listen: Callable[[], Awaitable[None]]

    def __init__(self, ports: Sequence[int]) -> None:
        self.cuts: list[int] = []
        self.within = 0
        self.connections = 0
        self.refuses = 0
        self.flows = asyncio.Event()
        self.flows.set()
        self.heads: list[str] = []
        self.port = 0
        self._targets = cycle(ports)
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self.port}/invocations"

    @property
    def ws(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    def cut_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def cut(self) -> None:
        """Close all connections, and refuse new ones until ``restore``."""
        self.refuses = sys.maxsize
        self.cut_all()

    async def restore(self) -> None:
        self.refuses = 0

    async def aclose(self) -> None:
        self.refuses = sys.maxsize  # a store that connects again now would have a connection that nobody closes
        while self._tasks:
            self.cut_all()
            await asyncio.wait(self._tasks, timeout=0.1)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self.serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.refuses:
            self.refuses -= 1
            writer.transport.abort()
            return
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", next(self._targets))
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, there_writer}
        meter = Meter(self)
        upward = asyncio.create_task(self._pass(reader, there_writer, meter.asked))
        downward = asyncio.create_task(self._pass(there_reader, writer, meter.answered))
        try:
            await asyncio.wait({upward, downward}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (upward, downward):
                task.cancel()
            for each in (writer, there_writer):
                each.transport.abort()
            self._writers -= {writer, there_writer}
            await asyncio.gather(upward, downward, return_exceptions=True)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passing: Callable[[bytes], tuple[bytes, bool]]
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                await self.flows.wait()
                passed, is_last = passing(data)
                writer.write(passed)
                await writer.drain()
                if is_last:
                    return


class Meter:
    def __init__(self, relay: EventRelay) -> None:
        self._relay = relay
        self._asks_capabilities = False
        self._cut: int | None = None
        self._seen = b""

    def asked(self, data: bytes) -> tuple[bytes, bool]:
        """Note a question about capabilities, whose answer is no run. A socket's frames are masked."""
        if HEAD_END in data:
            self._relay.heads.append(data.partition(HEAD_END)[0].decode("latin-1"))
        self._asks_capabilities = self._asks_capabilities or ASKS_CAPABILITIES in data
        return data, False

    def answered(self, data: bytes) -> tuple[bytes, bool]:
        before = len(self._seen)
        self._seen += data
        begins = [found.start() for found in EVENT.finditer(self._seen)]
        if self._cut is None and begins and not self._asks_capabilities and self._relay.cuts:
            self._cut = self._relay.cuts.pop(0)
        if self._cut is None or len(begins) <= self._cut:
            return data, False
        return self._seen[before : max(before, begins[self._cut] + self._relay.within)], True


@asynccontextmanager
async def relay_to(*ports: int, listens: bool = True) -> AsyncIterator[EventRelay]:
    relay = EventRelay(ports)
    listener = await asyncio.start_server(relay.accept, "127.0.0.1", 0, start_serving=listens)
    relay.port = listener.sockets[0].getsockname()[1]
    relay.listen = listener.start_serving
    async with listener:
        try:
            yield relay
        finally:
            listener.close()
            await relay.aclose()
