"""The manifest's rows about the protocols besides AG-UI: gRPC with roz and kontekst, and Roboto over HTTP."""

_GRPC = "docs/grpc.md"
_WHO = "docs/grpc.md#who-calls"
_LIMITS = "docs/grpc.md#limits"
_ROBOTO = "docs/roboto.md#routes"

PROTOCOLS = {
    "protocol.same": (_GRPC, "A turn goes the same way over AG-UI, roz and kontekst, as far as each can say it."),
    "protocol.loop": (
        "docs/add-a-protocol.md#the-parts",
        "One loop continues, refuses, lets expire, cancels and ends the conversations of all protocols.",
    ),
    "protocol.added": (
        _WHO,
        "A protocol is added by a translator, a connection and one line; the page about it works.",
    ),
    "protocol.crossed": (_WHO, "A thread of one protocol is read, answered, continued and cancelled over the others."),
    "grpc.port": (_GRPC, "gRPC, HTTP/1.1 and WebSocket share a port; the first bytes tell them apart."),
    "grpc.lazy": (_GRPC, "The modules of gRPC are not imported before the first HTTP/2 connection."),
    "grpc.library": (_GRPC, "The names of grpclib that are used are there."),
    "grpc.frames": (_LIMITS, "Frames that HTTP/2 allows harm nothing, and others end their connection with a reason."),
    "grpc.messages": (_LIMITS, "A message is refused by its size before it is read, compressed or not."),
    "grpc.calls": (_LIMITS, "A call that is wrong, cancelled or half-closed leaves the connection and the others."),
    "grpc.floods": (_LIMITS, "A flood of frames, calls, registrations or connections ends, and harms nobody else."),
    "grpc.slow": (_LIMITS, "A client that takes nothing holds back its own call only, and loses it after a minute."),
    "grpc.memory": (_LIMITS, "Memory of sessions and runs counts in the budget of their caller until it is released."),
    "grpc.gone": (_LIMITS, "A connection whose client is gone, or that nobody uses, is closed."),
    "grpc.drain": (_LIMITS, "At the end GOAWAY goes out, and open calls have their last messages and a status."),
    "grpc.deadline": (_WHO, "A deadline ends the watching and not the run."),
    "grpc.callers": (_WHO, "Web pages of other origins and calls with two sessions are refused."),
    "grpc.errors": ("docs/grpc.md#errors", "Every error has a status, and its code is in the trailers."),
    "grpc.writes": (_LIMITS, "A delta takes a bounded number of Python calls, and what is ready leaves in one frame."),
    "grpc.standard": (_GRPC, "Reflection of both versions and the health service work as their clients expect."),
    "grpc.clients": (_GRPC, "Clients in C++, Go and JavaScript work, unchanged."),
    "grpc.schema": (_GRPC, "The compiled schema is that of proto/, with the numbers of both generations of clients."),
    "roz.session": ("docs/grpc.md#roz", "A session flows as in roz's diagram."),
    "roz.tools": ("docs/grpc.md#requests", "Tools of the client are registered, requested, answered, and time out."),
    "roz.approvals": ("docs/grpc.md#requests", "A decision by the call's id approves or denies; others are refused."),
    "roz.control": ("docs/grpc.md#requests", "Turns and sessions are cancelled, pinged, rated and kept alive."),
    "roz.start": ("docs/grpc.md#requests", "Every field of a start and of a message does what is said of it."),
    "roz.answers": ("docs/grpc.md#answers", "Each generation of clients finds the answers in its own form."),
    "roz.team": ("docs/grpc.md#answers", "Subagents are watched by many, live and afterwards."),
    "kontekst.runs": ("docs/grpc.md#kontekst", "The events of a run come in the documented order."),
    "kontekst.asks": ("docs/grpc.md#kontekst", "Every call is proposed with its preview, and decided by itself."),
    "kontekst.start": ("docs/grpc.md#kontekst", "Every field of a start does what is said of it."),
    "kontekst.status": ("docs/grpc.md#kontekst", "The status shows real values."),
    "kontekst.shutdown": (
        "docs/grpc.md#kontekst",
        "A shutdown is refused unless it is allowed and nobody else may be.",
    ),
    "roboto.sessions": (_ROBOTO, "A session is begun, read, continued, copied and annotated; a turn goes to its end."),
    "roboto.delta": ("docs/roboto.md#polling", "Deltas put together are the session, and wait while nothing changes."),
    "roboto.idle": ("docs/roboto.md#polling", "200 clients that poll where nothing happens cost next to nothing."),
    "roboto.goals": (
        "docs/roboto.md#goals",
        "Goals are declared by Roboto's kinds or a schema, and have their status.",
    ),
    "roboto.tools": ("docs/roboto.md#what-becomes-of-each-field", "Tools of the client are called and answered."),
    "roboto.approvals": (
        "docs/roboto.md#approvals",
        "A turn that meets an approval says so; the next message denies it.",
    ),
    "roboto.errors": ("docs/roboto.md#what-becomes-of-each-field", "A refusal has Roboto's shape and class."),
    "roboto.package": ("docs/roboto.md", "The package and its command work, unchanged, in both generations."),
    "roboto.replicas": ("docs/roboto.md#polling", "A session of one replica is polled and continued through another."),
    "roboto.off": (
        "docs/configuration.md",
        "A start imports only its routes. With AGUI_ROBOTO=off nothing is served or told.",
    ),
}
