"""A long delta in pieces.

Rule: no delta that leaves is longer than ``MAX_DELTA`` characters, so every text or argument event fits a WebSocket
frame of AgentCore (docs/architecture.md) on whatever transport it leaves.
"""

from ag_ui.core import BaseEvent

MAX_DELTA = 5_000
"""Characters per delta. One character takes at most 6 bytes of JSON, so 30 KB."""


def split(event: BaseEvent) -> list[BaseEvent]:
    """A delta, or the same as several events where it is longer than ``MAX_DELTA``.

    Only the first piece keeps ``rawEvent`` and ``metadata``: they describe the whole.
    """
    delta: str = event.__dict__["delta"]
    if len(delta) <= MAX_DELTA:
        return [event]
    first, *rest = (delta[at : at + MAX_DELTA] for at in range(0, len(delta), MAX_DELTA))
    bare = {"raw_event": None, "metadata": None}
    return [
        event.model_copy(update={"delta": first}),
        *(event.model_copy(update={"delta": piece, **bare}) for piece in rest),
    ]
