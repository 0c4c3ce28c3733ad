"""Requirements for the store in AgentCore Memory; a part of the manifest in ``requirements``."""

MEMORY = {
    "memory.turn": ("docs/memory.md", "A turn is one CreateEvent, made once by its clientToken."),
    "memory.pages": ("docs/memory.md", "A thread of more than a hundred events is read in whole and in order."),
    "memory.pairs": ("docs/memory.md", "A turn of several events is read in whole or not at all."),
    "memory.names": ("docs/memory.md", "Any owner and thread id has an actor and a session of its own."),
    "memory.retries": ("docs/memory.md", "Throttling is waited out, a bounded number of times."),
    "memory.degrades": ("docs/memory.md", "A memory that fails costs no run; it is told and made up for."),
}
