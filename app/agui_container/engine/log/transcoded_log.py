"""A run's events in another encoding than the log's, made when a subscription asks for it.

Rule: an event is encoded once for all subscriptions that read it at about the same time. A large batch is encoded in a
worker thread, so that it does not block the event loop. The last events are cached, up to
``RECENT_BYTES``; older ones are encoded again for a late reader. The cache counts towards the limit of the process, not
towards that of the run, because readers must not end a run.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable

from agui_container.engine.admission.offload import offload
from agui_container.protocol.wire.envelope import Batch, Envelope

EncodeEvent = Callable[[bytes], bytes]

TRANSCODED_BYTES = 20_000
"""A batch with more bytes is encoded in a worker thread: a kilobyte of JSON takes about a tenth of a millisecond."""

RECENT_BYTES = 64_000
"""Limit of the encoded events that are cached for other readers of the run."""


class TranscodedLog:
    """The recent events of one log, encoded.

    Args:
        encode: returns the encoding of an event's JSON.
        on_resize: called with the change of the cached bytes.
    """

    def __init__(self, encode: EncodeEvent, on_resize: Callable[[int], None]) -> None:
        self._encode = encode
        self._on_resize = on_resize
        self._recent: OrderedDict[int, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = asyncio.Lock()

    async def encode(self, batch: Batch, identity: str) -> list[bytes]:
        """Return the encoding of each event in the batch, in order. ``identity`` is the reader's."""
        async with self._lock:
            missing = [envelope for envelope in batch.envelopes() if envelope.seq not in self._recent]
            if sum(len(envelope.data) for envelope in missing) > TRANSCODED_BYTES:
                encoded = await offload(identity, self._encode_all, missing)
            else:
                encoded = self._encode_all(missing)
            events = {**self._recent, **encoded}
            self._add_recent(encoded)
        return [events[seq] for seq in range(batch.first, batch.first + len(batch.data))]

    def _encode_all(self, envelopes: Iterable[Envelope]) -> dict[int, bytes]:
        return {envelope.seq: self._encode(envelope.data) for envelope in envelopes}

    def _add_recent(self, encoded: dict[int, bytes]) -> None:
        before = self._bytes
        self._recent.update(encoded)
        self._bytes += sum(map(len, encoded.values()))
        while self._bytes > RECENT_BYTES:
            _, event = self._recent.popitem(last=False)
            self._bytes -= len(event)
        self._on_resize(self._bytes - before)
