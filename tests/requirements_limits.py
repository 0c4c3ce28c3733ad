"""Requirements for limits of one caller; a part of the manifest in ``requirements``."""

_LIMITS = "docs/limits.md"

CALLERS = {
    "caller.identity": (_LIMITS, "Identities are told apart by what clients cannot choose."),
    "caller.runs": (_LIMITS, "A caller has at most its part of the open runs, and others start theirs."),
    "caller.abandoned": (_LIMITS, "Runs that nobody reads are ended for new ones when a limit is reached."),
    "caller.rate": (_LIMITS, "A caller that begins too many runs in a minute is told when to come back."),
    "caller.requests": (_LIMITS, "A caller has at most its part of the bytes of open requests."),
    "caller.logs": (_LIMITS, "A caller's events end its own runs when they are too many, and nobody else's."),
    "caller.streams": (_LIMITS, "A caller has at most its part of the open streams and sockets."),
    "caller.messages": (
        _LIMITS,
        "A caller that sends too many messages is read more slowly on sockets, and its gRPC calls end.",
    ),
    "caller.connections": (_LIMITS, "Half-sent requests of one caller leave another its runs, and everybody /ping."),
    "caller.loop": (_LIMITS, "A body of one caller that takes work keeps no other caller waiting."),
    "caller.background": (_LIMITS, "A caller with too much work behind its runs starts no further ones."),
}
