"""The bus in memory, for replicas in one process.

Rule: like a bus between processes, it stores only the last events of recent runs, so a late follower misses events.
Small limits are enough, because a process reads its own runs without a bus.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Generic, TypeVar

from agui_container.ports.bus import SILENCE, skip_seen
from agui_container.ports.records import RunKey
from agui_container.protocol.wire.envelope import Envelope

KEPT_EVENTS = 1_000
KEPT_STREAMS = 100
KEPT_BYTES = 16_000_000
"""Limit of the events of all runs together."""

KEPT_COMMANDS = 1_000

T = TypeVar("T")


class EntryBuffer(Generic[T]):
    """Numbered entries, of which only the last ones are stored, with readers that wait for new ones.

    Args:
        max_entries: maximum number of stored entries.
        max_bytes: maximum size of stored entries. The last entry is stored even if it is larger.
        size_of: returns the size of an entry in bytes.
    """

    def __init__(self, max_entries: int, max_bytes: int, size_of: Callable[[T], int]) -> None:
        self.entries: deque[tuple[int, T]] = deque()
        self.last = self.size = 0
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._size_of = size_of
        self._changed = asyncio.Event()

    def put(self, number: int, entry: T) -> None:
        """Add an entry, unless its number is not greater than the last one."""
        if number > self.last:
            self.entries.append((number, entry))
            self.size += self._size_of(entry)
            self.last = number
            self._make_room()
            self._changed.set()
            self._changed = asyncio.Event()

    def _make_room(self) -> None:
        while len(self.entries) > 1 and (len(self.entries) > self._max_entries or self.size > self._max_bytes):
            _, oldest = self.entries.popleft()
            self.size -= self._size_of(oldest)

    async def after(self, number: int, seconds: float | None) -> list[tuple[int, T]]:
        """Wait for entries with a greater number and return them. Return nothing after ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                while self.last <= number:
                    await self._changed.wait()
        except TimeoutError:
            return []
        return [entry for entry in self.entries if entry[0] > number]


class MemoryBus:
    """A ``Bus`` in memory."""

    def __init__(
        self, kept_events: int = KEPT_EVENTS, kept_streams: int = KEPT_STREAMS, kept_bytes: int = KEPT_BYTES
    ) -> None:
        self._kept_events = kept_events
        self._kept_streams = kept_streams
        self._kept_bytes = kept_bytes
        self._runs: OrderedDict[RunKey, EntryBuffer[Envelope]] = OrderedDict()
        self._bytes = 0
        self._replicas: dict[str, EntryBuffer[bytes]] = {}

    async def publish(self, run: RunKey, envelopes: Sequence[Envelope]) -> None:
        """Publish the next envelopes of a run."""
        stream = self._stream(run)
        self._runs.move_to_end(run)
        self._bytes -= stream.size
        for envelope in envelopes:
            stream.put(envelope.seq, envelope)
        self._bytes += stream.size
        self._make_room()

    async def follow(self, run: RunKey, after: int, silence: float = SILENCE) -> AsyncIterator[Sequence[Envelope]]:
        """Yield the envelopes after ``seq`` ``after`` in batches. Raises ``EventGap`` if there is a gap."""
        while True:
            entries = await self._stream(run).after(after, silence)
            batch = skip_seen(after, [envelope for _, envelope in entries])
            after += len(batch)
            yield batch

    def _stream(self, run: RunKey) -> EntryBuffer[Envelope]:
        stream = self._runs.get(run)
        if stream is None:
            stream = self._runs[run] = EntryBuffer(
                self._kept_events, self._kept_bytes, lambda envelope: len(envelope.data)
            )
            self._make_room()
        return stream

    def _make_room(self) -> None:
        """Remove the runs without events for the longest time, but never the last run."""
        while len(self._runs) > 1 and (len(self._runs) > self._kept_streams or self._bytes > self._kept_bytes):
            _, oldest = self._runs.popitem(last=False)
            self._bytes -= oldest.size

    async def send(self, replica: str, command: bytes) -> None:
        """Send a command to a replica."""
        stream = self._commands(replica)
        stream.put(stream.last + 1, command)

    async def commands(self, replica: str) -> AsyncIterator[bytes]:
        """Yield the commands that were sent to a replica."""
        last = 0
        while True:
            for number, command in await self._commands(replica).after(last, None):
                last = number
                yield command

    def _commands(self, replica: str) -> EntryBuffer[bytes]:
        return self._replicas.setdefault(replica, EntryBuffer(KEPT_COMMANDS, KEPT_BYTES, len))

    async def open(self) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""
