"""What makes the speed and can be seen without a clock; a part of the manifest in ``requirements``."""

SPEED = {
    "speed.bursts": (
        "issue 4, item 2",
        "What an agent says without waiting is one write; when it waits, readers have it.",
    ),
    "speed.deltas": (
        "issue 4, item 1",
        "A delta that differs from the one before in its text only is told by it, in the same bytes.",
    ),
    "speed.at-once": (
        "issue 4, item 3",
        "A lone event is written without a switch of tasks, in order, and harms nobody.",
    ),
    "speed.memory": (
        "issue 4, item 3",
        "What a log keeps of a token is little more than its text; a stream that only waits holds one task.",
    ),
}
