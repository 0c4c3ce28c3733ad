"""What a follower is handed: what comes next, and nothing where something is missing."""

from collections.abc import Sequence

from agui_container.ports.bus import Missed
from agui_container.protocol.wire.envelope import Envelope


def skip_seen(after: int, found: Sequence[Envelope]) -> Sequence[Envelope]:
    """Those that come after ``seq`` ``after``, each once. Raises ``Missed`` for a gap."""
    batch: list[Envelope] = []
    for envelope in found:
        due = after + len(batch) + 1
        if envelope.seq > due:
            raise Missed(f"event {envelope.seq} came where {due} was due")
        if envelope.seq == due:
            batch.append(envelope)
    return batch
