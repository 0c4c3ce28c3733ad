"""Removal of duplicates and detection of gaps in the envelopes that a follower receives."""

from collections.abc import Sequence

from agui_container.ports.bus import Missed
from agui_container.protocol.wire.envelope import Envelope


def skip_seen(after: int, envelopes: Sequence[Envelope]) -> Sequence[Envelope]:
    """Return the envelopes after ``seq`` ``after``, each once. Raises ``Missed`` if there is a gap."""
    batch: list[Envelope] = []
    for envelope in envelopes:
        expected = after + len(batch) + 1
        if envelope.seq > expected:
            raise Missed(f"received event {envelope.seq}, expected {expected}")
        if envelope.seq == expected:
            batch.append(envelope)
    return batch
