"""Requirements for HTTP and WebSocket; a part of the manifest in ``requirements``."""

_BINARY = "spec basic/transports/http-protobuf"

HTTP = {
    "http.frames": ("docs/http-api.md#routes", "SSE frames are id and data, ended by LF LF."),
    "http.headers": ("docs/http-api.md#routes", "The stream forbids caching and buffering."),
    "http.keepalive": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "Silence is broken by a comment.",
    ),
    "http.content-type": ("docs/http-api.md#routes", "Any or no Content-Type is accepted."),
    "http.status": (
        "docs/http-api.md#errors",
        "A refusal has the status of the error table and one RUN_ERROR as its body.",
    ),
    "http.status-stream": ("docs/configuration.md", "With AGUI_ERROR_STATUS=stream a refused invocation is a 200."),
    "http.request-id": ("docs/http-api.md#errors", "Body, header and log carry the request id that the request gave."),
    "http.own-request-id": ("docs/http-api.md#errors", "Without a usable request id the server makes one."),
    "http.internal": ("docs/http-api.md#errors", "A fault of the server itself is INTERNAL_ERROR without its text."),
    "http.ping": ("docs/http-api.md#routes", "/ping answers status and an integer time_of_last_update."),
    "http.capabilities": ("docs/http-api.md#routes", "GET /capabilities answers AgentCapabilities."),
    "http.runs": ("docs/http-api.md#routes", "GET /runs and /runs/ID show the caller's runs, newest first."),
    "http.cancel": ("docs/http-api.md#routes", "POST /runs/ID/cancel cancels; idempotent."),
    "http.ended": (
        "docs/http-api.md#routes",
        "A reader with all events of an ended run gets 204, which ends an EventSource.",
    ),
    "http.events": (
        "docs/http-api.md#routes",
        "GET /runs/ID/events replays after ?after or Last-Event-ID, then goes on.",
    ),
    "http.cursor": ("docs/http-api.md#routes", "A cursor that is no number is a VALIDATION_ERROR."),
    "http.command": ("docs/http-api.md#commands", "A command is answered by a small legal run with the input's ids."),
    "page.unknown": (
        "docs/http-api.md#in-a-browser",
        "A browser gets the error of a GET as a page, with its status; everybody else gets RUN_ERROR.",
    ),
    "page.safe": ("docs/http-api.md#in-a-browser", "A page runs no script, and nothing of the request is markup."),
    "page.links": ("docs/http-api.md#in-a-browser", "The links of a page work, also under a path prefix."),
    "openapi.routes": ("docs/http-api.md#openapi", "The document has the routes that the application has."),
    "openapi.valid": ("docs/http-api.md#openapi", "Schemas, references and names of the document are valid."),
    "openapi.answers": ("docs/http-api.md#openapi", "Answers have the statuses and schemas of the document."),
    "openapi.page": ("docs/http-api.md#openapi", "The page shows the whole document and loads nothing."),
    "binary.bytes": (_BINARY, "Every event type has the bytes that @ag-ui/proto 1.0.0 gives it."),
    "binary.schema": (_BINARY, "The compiled schema is what protoc makes of agui.proto."),
    "binary.accept": (f"{_BINARY}#negotiation", "Accept decides between SSE and protobuf, for every stream."),
    "binary.refusal": (
        f"{_BINARY}#errors",
        "A refusal with an error status is SSE; one with 200 is what was asked for.",
    ),
    "binary.once": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "An event is encoded as protobuf only for readers of it, a large one off the event loop.",
    ),
    "binary.leave": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "A protobuf reader that leaves or takes nothing is one like any other.",
    ),
    "http.session-id": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "A session id that is too long is refused.",
    ),
    "origin.none": ("docs/http-api.md#routes", "A request without Origin is let in."),
    "origin.own": (
        "docs/http-api.md#routes",
        "A page of this server's own host may call, default ports left out or not.",
    ),
    "origin.rebound": (
        "docs/http-api.md#routes",
        "A page under any name but localhost must be configured, also to read.",
    ),
    "origin.navigation": (
        "docs/http-api.md#routes",
        "A link on another site may open the start page, and nothing else.",
    ),
    "origin.foreign": ("docs/http-api.md#routes", "A page of another host or port is refused, and so is Origin null."),
    "origin.configured": ("docs/configuration.md", "A page that AGUI_CORS_ORIGINS names may call."),
    "origin.preflight": ("docs/configuration.md", "A preflight is answered for configured origins only."),
    "origin.socket": ("docs/http-api.md#routes", "A socket with a foreign Origin is refused."),
    "origin.logged": ("docs/operations.md#web-pages", "The log names refused origins."),
}
SOCKET = {
    "ws.frames": ("docs/websocket.md", "One bare AG-UI event per text frame."),
    "ws.bad-frame": ("docs/websocket.md", "A bad frame is answered by a control error, and the connection lives."),
    "ws.binary": ("docs/websocket.md", "A binary frame is refused, and the connection lives."),
    "ws.large": ("docs/configuration.md", "A frame that is too large is PAYLOAD_TOO_LARGE, and the connection lives."),
    "ws.many": ("docs/websocket.md", "Many runs per connection, one after another."),
    "ws.reject": ("docs/websocket.md", "A run during a run is refused with reject, whatever its thread."),
    "ws.enqueue": ("docs/websocket.md", "With enqueue it streams after the first; runs do not interleave."),
    "ws.interrupt": ("docs/websocket.md", "With interrupt the first run is cancelled and the second follows."),
    "ws.at-once": (
        "docs/operations.md",
        "A cancel waits for nothing that was asked before, but the run that it names.",
    ),
    "ws.own-run": (
        "docs/http-api.md#commands",
        "Without ids, cancel and attach mean the connection's own run and its thread's last.",
    ),
    "ws.retry": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "A retry of a run that streams or waits on the socket changes nothing.",
    ),
    "ws.command": ("docs/websocket.md", "Answers carry the command's id, also while a run streams."),
    "ws.cursor": ("docs/websocket.md", "With ?cursor=1 every event carries metadata.seq beside its own metadata."),
    "ws.no-cursor": ("docs/websocket.md", "Without it the event is what the agent yielded."),
    "ws.merge": ("docs/websocket.md", "Adjacent deltas merge without loss when the reader falls behind."),
    "ws.size": ("docs/websocket.md", "No frame of text is above 32 KB."),
    "ws.pace": ("docs/websocket.md", "At most 230 frames in any second; a lone event is never delayed."),
    "ws.bearer": ("docs/websocket.md", "A bearer token is taken from Sec-WebSocket-Protocol."),
    "ws.query": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "AgentCore's headers may come in the query.",
    ),
}
