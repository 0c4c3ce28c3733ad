"""A bus for several replicas in the process of a test."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from agui_container.ports.bus import SILENCE, skip_seen
from agui_container.ports.records import RunKey
from agui_container.protocol.envelope import Envelope


class MemoryBus:
    def __init__(self) -> None:
        self._runs = defaultdict[RunKey, list[Envelope]](list)
        self._changed = asyncio.Event()

    async def publish(self, run: RunKey, envelopes: Sequence[Envelope]) -> None:
        known = self._runs[run]
        last = known[-1].seq if known else 0
        known += [envelope for envelope in envelopes if envelope.seq > last]
        self._changed.set()
        self._changed = asyncio.Event()

    async def follow(self, run: RunKey, after: int, silence: float = SILENCE) -> AsyncIterator[Sequence[Envelope]]:
        """Yield the envelopes after ``seq`` ``after`` in batches. Raises ``EventGap`` if there is a gap."""
        while True:
            batch = self._after(run, after)
            if not batch:
                with suppress(TimeoutError):
                    async with asyncio.timeout(silence):
                        while not batch:
                            await self._changed.wait()
                            batch = self._after(run, after)
            after += len(batch)
            yield batch

    def _after(self, run: RunKey, after: int) -> Sequence[Envelope]:
        return skip_seen(after, [envelope for envelope in self._runs[run] if envelope.seq > after])

    async def open(self) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""
