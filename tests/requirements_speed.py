"""Behaviour behind the speed that can be seen without a clock; a part of the manifest in ``requirements``."""

SPEED = {
    "speed.flush": (
        "docs/performance.md",
        "Events that an agent yields without waiting leave in one write; when it waits, readers have them.",
    ),
    "speed.deltas": (
        "docs/performance.md",
        "A delta that differs from the one before in its text only is encoded to the same bytes as on the normal path.",
    ),
    "speed.push": (
        "docs/performance.md",
        "No write to a client runs in the agent's task, and a write that waits or fails harms no run.",
    ),
    "speed.memory": (
        "docs/performance.md",
        "A log keeps at most 150 bytes of an event besides its text.",
    ),
}
