"""Behaviour behind the speed that can be seen without a clock; a part of the manifest in ``requirements``."""

SPEED = {
    "speed.flush": (
        "issue 27, item 1",
        "Events that an agent yields without waiting leave in one write; when it waits, readers have them.",
    ),
    "speed.deltas": (
        "issue 27, item 1",
        "A delta that differs from the one before in its text only is encoded to the same bytes as on the normal path.",
    ),
    "speed.push": (
        "issue 27, item 1",
        "No write to a client runs in the agent's task, and a write that waits or fails harms no run.",
    ),
    "speed.memory": (
        "issue 27, item 1",
        "A log keeps at most 150 bytes of an event besides its text.",
    ),
}
