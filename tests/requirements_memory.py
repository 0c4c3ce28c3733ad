"""What a store in AgentCore Memory promises; a part of the manifest in ``requirements``."""

MEMORY = {
    "memory.turn": ("issue 5, item 9; R27", "A turn is one CreateEvent, made once by its clientToken."),
    "memory.pages": ("issue 5, item 9; R27", "A thread of more than a hundred events is read in whole and in order."),
    "memory.pairs": ("issue 5, item 9; R27", "A turn of several events is read in whole or not at all."),
    "memory.names": ("issue 5, item 9; R27", "Any owner and thread id has an actor and a session of its own."),
    "memory.retries": ("issue 5, item 9; R27", "Throttling is waited out, a bounded number of times."),
    "memory.degrades": ("issue 5, item 9; R27", "A memory that fails costs no run; it is told and made up for."),
}
