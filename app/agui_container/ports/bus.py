"""Port of the bus between replicas, which carries the events of active runs.

Rule: the bus may lose messages, and only the store is reliable. An event is stored before it is published. A follower
detects a gap and reads the missing events from the store. The bus does not decide which replica executes a run.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from agui_container.ports.records import RunKey
from agui_container.protocol.envelope import Envelope

SILENCE = 5.0
"""Seconds without an event after which a follower gets an empty batch."""


class BusUnavailable(Exception):
    """The bus is unreachable or too slow. The text is for the log. The same call may succeed later."""


class EventGap(Exception):
    """Events that a follower needs are no longer on the bus. Read them from the store and follow from there."""


class Bus(Protocol):
    """A message bus. Every method raises ``BusUnavailable`` and no exception of the underlying client library."""

    async def publish(self, run: RunKey, envelopes: Sequence[Envelope]) -> None:
        """Publish the next envelopes of a run. Envelopes that were published already are skipped."""

    def follow(self, run: RunKey, after: int, silence: float = SILENCE) -> AsyncIterator[Sequence[Envelope]]:
        """Iterate over the batches after ``seq`` ``after``, in order and without gaps, until the iterator is closed.

        An empty batch means that no event came for ``silence`` seconds. The caller then checks in the store that the
        run is still active, because its replica may have died.

        Raises:
            EventGap: the next batch would leave a gap.
        """

    async def open(self) -> None:
        """Connect."""

    async def aclose(self) -> None:
        """Close all connections. No other method is called afterwards."""


def skip_seen(after: int, envelopes: Sequence[Envelope]) -> Sequence[Envelope]:
    """Return the envelopes after ``seq`` ``after``, each once. Raises ``EventGap`` if there is a gap."""
    batch: list[Envelope] = []
    for envelope in envelopes:
        expected = after + len(batch) + 1
        if envelope.seq > expected:
            raise EventGap(f"received event {envelope.seq}, expected {expected}")
        if envelope.seq == expected:
            batch.append(envelope)
    return batch
