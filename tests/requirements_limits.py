"""Requirements for limits of one identity; a part of the manifest in ``requirements``."""

_LIMITS = "docs/limits.md"

CALLERS = {
    "caller.identity": (_LIMITS, "Identities are told apart by what clients cannot choose."),
    "caller.runs": (_LIMITS, "An identity has at most its part of the open runs, and others start theirs."),
    "caller.abandoned": (_LIMITS, "Runs that nobody reads are ended for new ones when a limit is reached."),
    "caller.rate": (_LIMITS, "An identity that begins too many runs in a minute is told when to come back."),
    "caller.requests": (_LIMITS, "An identity has at most its part of the bytes of open requests."),
    "caller.logs": (_LIMITS, "An identity's events end its own runs when they are too many, and nobody else's."),
    "caller.streams": (_LIMITS, "An identity has at most its part of the open streams and sockets."),
    "caller.messages": (
        _LIMITS,
        "An identity that sends too many messages is read more slowly on sockets, and its gRPC calls end.",
    ),
    "caller.connections": (_LIMITS, "Half-sent requests of one identity leave another its runs, and everybody /ping."),
    "caller.loop": (_LIMITS, "A body of one identity that takes work keeps no other one waiting."),
    "caller.background": (_LIMITS, "An identity with too much work behind its runs starts no further ones."),
}
