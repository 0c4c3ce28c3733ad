"""A run's events in another encoding than the log's, made when the first reader asks for it.

Rule: an event is encoded once, however many readers there are, and nobody else waits for it: much at once is encoded in
a thread. What is made is kept as long as the log and counts as memory that the process holds, but not against the run's
own limit, because a run must not end for how it is read.
"""

import asyncio
from collections.abc import Callable, Iterable

import anyio.to_thread

from app.core.wire import Batch, Envelope

Encode = Callable[[bytes], bytes]

LARGE_BYTES = 20_000
"""Events above this are encoded in a thread: a kilobyte of JSON takes about a tenth of a millisecond."""


class Rendition:
    """The events of one log, encoded.

    Args:
        encode: an event's JSON to what readers get.
        on_kept: told how many bytes were made.
    """

    def __init__(self, encode: Encode, on_kept: Callable[[int], None]) -> None:
        self._encode = encode
        self._on_kept = on_kept
        self._made: dict[int, bytes] = {}
        self._lock = asyncio.Lock()

    async def of(self, batch: Batch) -> list[bytes]:
        """Each envelope's bytes, in order."""
        async with self._lock:
            missing = [envelope for envelope in batch.envelopes() if envelope.seq not in self._made]
            if sum(len(envelope.data) for envelope in missing) > LARGE_BYTES:
                made = await anyio.to_thread.run_sync(self._encoded, missing)
            else:
                made = self._encoded(missing)
            self._made.update(made)
            self._on_kept(sum(map(len, made.values())))
        return [self._made[seq] for seq in range(batch.first, batch.first + len(batch.data))]

    def _encoded(self, batch: Iterable[Envelope]) -> dict[int, bytes]:
        return {envelope.seq: self._encode(envelope.data) for envelope in batch}
