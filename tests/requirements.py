"""The manifest: every behaviour that is promised, where the promise comes from, and one sentence.

A test cites what it shows with ``@requirement("id")``; ``test_manifest`` checks that nothing is cited that is not here,
and that nothing is here that no test shows. Sources: ``design N`` is a section of the design, ``R N`` a rule of the
AgentCore reference, ``V N`` a check of the official client's verifier, ``spec …`` a page of the AG-UI specification
1.1, and ``issue N`` an item of the issue that asked for it.
"""

from typing import NamedTuple

import pytest

from tests.requirements_assistant import APPROVALS, ASSISTANT
from tests.requirements_conversations import FEEDBACK, THREADS
from tests.requirements_goals import BUDGETS, GOALS
from tests.requirements_memory import MEMORY
from tests.requirements_speed import SPEED
from tests.requirements_telemetry import TELEMETRY
from tests.requirements_threads import DURABLE


class Requirement(NamedTuple):
    """Where a behaviour is asked for, and what it is."""

    source: str
    sentence: str


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Say which behaviours a test shows."""
    return pytest.mark.requirement(*ids)


_PROMISE_1 = "design 5, promise 1; R7"
_TOOLS = "spec events/tool-calls#frontend-tools"

LIFECYCLE = {
    "run.legal": (_PROMISE_1, "Whatever an agent yields, raises or suffers, its log is a legal run."),
    "run.refused": (_PROMISE_1, "What a tool sends in vain opens nothing, and ends nothing if it cannot be said."),
    "run.older": ("spec basic/versioning", "Who declares no version gets no shape that came with AG-UI 1.0."),
    "run.starts": (_PROMISE_1, "A run starts with RUN_STARTED, which carries protocolVersion and the input's ids."),
    "run.parent": ("spec events/lifecycle", "RUN_STARTED carries the input's parentRunId."),
    "run.succeeds": (_PROMISE_1, "An agent that returns ends its run with RUN_FINISHED and outcome success."),
    "run.stamped": ("spec events/lifecycle", "The boundary events carry a timestamp in milliseconds."),
    "run.result": ("spec events/lifecycle", "The result of an agent's own RUN_FINISHED is kept."),
    "run.own-start": (_PROMISE_1, "An agent's own RUN_STARTED as its first event is absorbed."),
    "run.second-start": ("V2", "A RUN_STARTED later on is the agent's error."),
    "run.ids": ("spec run-input", "RUN_FINISHED carries the run's ids whatever the agent put there."),
    "run.returns-early": (_PROMISE_1, "What an agent leaves open when it returns is closed."),
    "run.over-emits": (_PROMISE_1, "What an agent yields after its terminal event is dropped."),
    "run.events": ("issue 2, item 3", "All 31 event types pass through; chunks leave as START, CONTENT, END."),
    "run.said": ("design 4.6", "Text by its message's id is TEXT_MESSAGE_CONTENT of that message."),
    "run.extras": ("issue 2, item 2", "Fields of an event that AG-UI does not know are kept."),
    "run.pending": (_TOOLS, "Success names exactly the calls that were not answered, in order."),
    "run.open-call": (_TOOLS, "A call that is still open on success is the agent's error; its arguments may be cut."),
    "run.unknown-result": ("spec events/tool-calls", "A result for a call that nobody made is the agent's error."),
    "run.known-result": ("spec events/tool-calls", "A call from the history may be answered."),
    "run.interrupts": ("spec basic/patterns/interrupt-resume", "An interrupt outcome passes, and its status shows."),
    "run.interrupt-ids": (
        "spec basic/patterns/interrupt-resume",
        "Interrupts need unique ids, and there is at least 1.",
    ),
    "run.own-cancelled": ("spec events/lifecycle#cancelled-runs", "An agent may end its own run as cancelled."),
    "run.usage": ("spec events/lifecycle#token-usage", "Usage is summed per model on every terminal event."),
    "run.made-late": ("design 5, promise 3; R6", "Building the server makes no id and reads no clock."),
    "run.bad-usage": ("spec events/lifecycle#token-usage", "Usage that cannot be added up is left out, not fatal."),
}

FAILURES = {
    "fail.before": (_PROMISE_1, "An agent that raises before its first event ends with RUN_STARTED, RUN_ERROR."),
    "fail.middle": (_PROMISE_1, "An agent that raises in the middle has everything closed before RUN_ERROR."),
    "fail.after": (_PROMISE_1, "An agent that raises after its RUN_FINISHED changes nothing."),
    "fail.reported": (_PROMISE_1, "An agent's own RUN_ERROR ends the run with what it says."),
    "fail.subagent": ("spec events/subagents", "A failure ends open subagents with SUBAGENT_ERROR."),
    "fail.illegal": ("design 3", "An illegal event is the agent's error: what is open is closed, then RUN_ERROR."),
    "fail.not-an-event": ("design 3", "What is neither an event nor a string is the agent's error."),
    "fail.unencodable": ("design 3", "An event that cannot be sent is the agent's error, and nothing of it leaves."),
    "fail.safe": ("design 4.5; R8", "Exception text never reaches a client."),
    "fail.shown": ("design 4.5", "The code and message of an AppError reach the client."),
    "fail.request-id": ("design 4.5", "RUN_ERROR carries the request id under which the log has the cause."),
    "fail.exit": ("design 5, promise 2", "SystemExit and CancelledError of an agent end its run only."),
}

FORMS = {
    "agent.strings": ("design 4.6", "Strings stream as one assistant message."),
    "agent.sync": ("design 4.6", "A plain generator function is an agent."),
    "agent.object": ("design 4.6", "An object with run(input) is an agent."),
    "agent.context": ("design 4.6", "ctx gives thread, run, session and the allowed headers."),
    "agent.cookies": ("R22", "Cookies and transport headers never reach an agent."),
    "agent.input": ("issue 2, item 2", "Unknown fields of the body are kept and reach the agent."),
    "agent.defaults": ("issue 2, item 2", "Optional fields that are absent have the value that absence means."),
    "agent.split": ("design 4.4; R11", "A long delta leaves in pieces that fit a WebSocket frame."),
    "agent.background": ("design 4.2; R3", "Background work outlives its run and keeps the server busy."),
    "agent.last-state": ("design 4.6", "Background work reads the run's last state behind the run's end."),
    "agent.cancelled": ("design 4.6", "ctx.cancelled says when the run is over."),
}

CANCEL = {
    "cancel.closes": ("issue 2, item 3", "A cancelled run closes everything and ends RUN_FINISHED, cancelled."),
    "cancel.at-once": ("design 5, promise 1", "A cancel ends the run for its readers even if the agent resists."),
    "cancel.idempotent": ("design 4.2", "Cancelling a run that is over changes nothing and says how it stands."),
    "cancel.queued": ("design 4.3", "A run that waits can be cancelled; it then starts and ends."),
    "cancel.thread": ("design 4.3", "Without runId the thread's active run is cancelled."),
    "cancel.unknown": ("design 4.5", "Cancelling what is not there is RUN_NOT_FOUND."),
    "cancel.in-input": ("design 4.3", "A cancel inside a RunAgentInput addresses its thread."),
}

READING = {
    "attach.replay": ("design 4.3; R15", "Attaching replays what was sent and goes on live."),
    "attach.after": ("design 4.2", "Attaching after N begins with event N + 1."),
    "attach.ahead": ("design 4.5", "A cursor ahead of the run is a VALIDATION_ERROR."),
    "attach.thread": ("design 4.3", "Without runId the thread's active run is read, else its latest."),
    "attach.late": ("R15", "A reader that comes after the end sees the whole run."),
    "attach.same": ("R15", "Two readers of one run see the same."),
    "attach.unknown": ("design 4.5", "Attaching to what is not there is RUN_NOT_FOUND."),
    "attach.numbers": ("design 2", "Events are numbered from 1 without gaps, the same for every reader."),
    "retry.joins": ("design 5, promise 5; R14", "A retry of the same ids joins the run, which runs once."),
    "retry.ended": ("design 5, promise 5", "A retry after the end replays the run."),
    "retry.forgotten": ("design 5, promise 5", "A retry of a run that is forgotten is refused, never run again."),
}

BUSY = {
    "busy.leaving": ("design 4.1", "A request that arrives before the drop it follows waits a moment for it."),
    "busy.reject": ("design 4.1; R14", "A second run on a busy thread is THREAD_BUSY."),
    "busy.enqueue": ("design 4.1", "With enqueue it waits and runs afterwards."),
    "busy.interrupt": ("design 4.1", "With interrupt the first run is cancelled."),
    "busy.admitted": ("design 4.1", "A run that is refused cancels nothing."),
    "busy.interrupt-line": ("design 4.1", "An interrupt also ends those that wait."),
    "busy.override": ("design 4.1", "forwardedProps.onBusy overrides the policy for one request."),
    "busy.invalid": ("design 4.1", "An unknown onBusy is a VALIDATION_ERROR."),
    "busy.bound": ("design 5, promise 6", "A thread's queue is bounded."),
    "busy.other": ("design 2", "Another thread is not held up."),
    "busy.free": ("design 2", "A thread is free again as soon as its run has ended."),
}

DISCONNECT = {
    "drop.cancel": ("design 4.1; R12", "With cancel, a run ends when its last reader leaves."),
    "drop.continue": ("design 4.1; R12", "With continue, a run goes on without readers."),
    "drop.grace": ("design 4.1", "With grace, a run is cancelled when nobody came back in time."),
    "drop.returns": ("design 4.1", "A reader that comes back in time keeps the run."),
    "drop.gives-way": ("design 4.1", "During its grace a run gives way at once to a new run on its thread."),
    "drop.others": ("design 4.1", "A reader that leaves while another stays changes nothing."),
}

LIMITS = {
    "limit.time": ("design 4.1; R19", "A run that takes too long ends with RUN_TIMEOUT."),
    "limit.size": ("design 5, promise 6", "A run that says too much ends with RUN_LIMIT_EXCEEDED."),
    "limit.all": ("design 5, promise 6", "When all runs together hold too much, a run that writes is ended."),
    "limit.open": ("design 5, promise 6", "More open runs than allowed are RATE_LIMIT_EXCEEDED."),
    "limit.kept": ("design 5, promise 6", "Only so many ended runs are kept; the oldest are forgotten first."),
    "limit.kept-bytes": ("design 5, promise 6", "Only so many bytes of ended runs are kept."),
    "limit.read": ("design 5, promise 6", "A run that somebody reads is not forgotten."),
    "drain.ends": ("issue 2, item 3; R20", "A drain ends open and waiting runs with SHUTTING_DOWN."),
    "drain.grace": ("issue 2, item 3", "A run that ends within the drain's grace ends as it would have."),
    "drain.behind": ("R20", "A stop stores the ends of runs before events that the store is behind with."),
    "drain.refuses": ("issue 2, item 3", "New runs are refused with SHUTTING_DOWN while it drains."),
    "health.busy": ("design 4.2; R3", "The server is busy while a run is open."),
    "health.stamp": ("design 4.2; R2", "The time of the last update changes only when the status does."),
    "health.ready": ("design 4.2; R5", "Before initialisation /ping says 503."),
}

SCOPE = {
    "scope.session": ("design 4.1; R23", "With scope session, another session's runs are not found."),
    "scope.threads": ("design 4.1; R23", "Threads and runs of two sessions may have the same ids."),
    "scope.none": ("design 4.1", "With scope none, everybody sees all runs."),
    "command.capabilities": ("design 4.3", "The command capabilities says what is really configured."),
    "command.ping": ("design 4.4", "The command ping is answered."),
    "command.in-input": ("design 4.3", "A command may come inside a RunAgentInput."),
    "command.foreign": ("design 4.3", "A framework's own forwardedProps.command reaches the agent untouched."),
    "command.invalid": ("design 4.3", "A command with a bad field is a VALIDATION_ERROR that names it."),
    "error.body": ("design 4.5; R9", "Malformed input is a VALIDATION_ERROR before a run exists."),
    "error.large": ("design 4.1; R10", "A body that is too large is PAYLOAD_TOO_LARGE."),
    "error.integer": ("R9", "An integer that no double holds is refused in a body and null in an event."),
    "error.harmless": ("design 5, promise 2", "A refused request harms no run."),
}

_BINARY = "spec basic/transports/http-protobuf"

HTTP = {
    "http.frames": ("design 4.2", "SSE frames are id and data, ended by LF LF."),
    "http.headers": ("design 4.2; R17", "The stream forbids caching and buffering."),
    "http.keepalive": ("R17", "Silence is broken by a comment."),
    "http.content-type": ("design 4.2; R10", "Any or no Content-Type is accepted."),
    "http.status": ("design 4.5", "A refusal has the status of the error table and one RUN_ERROR as its body."),
    "http.status-stream": ("design 4.1; R9", "With AGUI_ERROR_STATUS=stream a refused invocation is a 200."),
    "http.request-id": ("design 4.5", "Body, header and log carry the request id that the request gave."),
    "http.own-request-id": ("design 4.5", "Without a usable request id the server makes one."),
    "http.internal": ("design 4.5", "A fault of the server itself is INTERNAL_ERROR without its text."),
    "http.ping": ("design 4.2; R2", "/ping answers status and an integer time_of_last_update."),
    "http.capabilities": ("design 4.2", "GET /capabilities answers AgentCapabilities."),
    "http.runs": ("design 4.2", "GET /runs and /runs/ID show the caller's runs, newest first."),
    "http.cancel": ("design 4.2", "POST /runs/ID/cancel cancels; idempotent."),
    "http.ended": ("design 4.2", "Who has all of a run that has ended gets 204, which ends an EventSource."),
    "http.events": ("design 4.2", "GET /runs/ID/events replays after ?after or Last-Event-ID, then goes on."),
    "http.cursor": ("design 4.2", "A cursor that is no number is a VALIDATION_ERROR."),
    "http.command": ("design 4.3", "A command is answered by a small legal run with the input's ids."),
    "binary.bytes": (_BINARY, "Every event type has the bytes that @ag-ui/proto 1.0.0 gives it."),
    "binary.schema": (_BINARY, "The compiled schema is what protoc makes of agui.proto."),
    "binary.accept": (f"{_BINARY}#negotiation", "Accept decides between SSE and protobuf, for every stream."),
    "binary.refusal": (
        f"{_BINARY}#errors",
        "A refusal with an error status is SSE; one with 200 is what was asked for.",
    ),
    "binary.once": ("design 5", "An event is encoded once for all protobuf readers, and not at all without one."),
    "binary.leave": ("design 5, promise 4", "A protobuf reader that leaves or takes nothing is one like any other."),
    "http.session-id": ("R22", "A session id that is too long is refused."),
    "origin.none": ("design 4.2", "A request without Origin is let in."),
    "origin.own": ("design 4.2", "A page of this server's own host may call, default ports left out or not."),
    "origin.rebound": ("design 4.2", "A page under any name but localhost must be configured, also to read."),
    "origin.navigation": ("design 4.2", "A link on another site may open the start page, and nothing else."),
    "origin.foreign": ("design 4.2", "A page of another host or port is refused, and so is Origin null."),
    "origin.configured": ("design 4.1", "A page that AGUI_CORS_ORIGINS names may call."),
    "origin.preflight": ("design 4.1; R32", "A preflight is answered for configured origins only."),
    "origin.socket": ("design 4.2", "A socket with a foreign Origin is refused."),
}

SOCKET = {
    "ws.frames": ("design 4.4; R11", "One bare AG-UI event per text frame."),
    "ws.bad-frame": ("design 4.4", "A bad frame is answered by a control error, and the connection lives."),
    "ws.binary": ("design 4.4", "A binary frame is refused, and the connection lives."),
    "ws.large": ("design 4.1", "A frame that is too large is PAYLOAD_TOO_LARGE, and the connection lives."),
    "ws.many": ("design 4.4; R11", "Many runs per connection, one after another."),
    "ws.reject": ("design 4.4", "A run during a run is refused with reject, whatever its thread."),
    "ws.enqueue": ("design 4.4", "With enqueue it streams after the first; runs do not interleave."),
    "ws.interrupt": ("design 4.4", "With interrupt the first run is cancelled and the second follows."),
    "ws.at-once": ("issue 5, item 7", "A cancel waits for nothing that was asked before, but the run that it names."),
    "ws.own-run": ("design 4.3", "Without ids, cancel and attach mean the connection's own run and its thread's last."),
    "ws.retry": ("design 5, promise 5", "A retry of a run that streams or waits on the socket changes nothing."),
    "ws.command": ("design 4.4", "Answers carry the command's id, also while a run streams."),
    "ws.cursor": ("design 4.4", "With ?cursor=1 every event carries metadata.seq beside its own metadata."),
    "ws.no-cursor": ("design 4.4", "Without it the event is what the agent yielded."),
    "ws.merge": ("design 4.4; R18", "Adjacent deltas merge without loss when the reader falls behind."),
    "ws.size": ("design 4.4; R11", "No frame of text is above 32 KB."),
    "ws.pace": ("design 4.4; R11", "At most 250 frames in any second; a lone event is never delayed."),
    "ws.bearer": ("design 4.4", "A bearer token is taken from Sec-WebSocket-Protocol."),
    "ws.query": ("R22", "AgentCore's headers may come in the query."),
}

STATE = {
    "state.read": ("issue 3, item 6", "A tool reads the state; none is the empty object."),
    "state.changed": ("issue 3, item 6; spec events/state", "A tool's change is a delta or a snapshot, sent at once."),
    "state.thread": ("issue 3, item 6", "A tool in a thread may do what one on the loop may."),
    "state.atomic": (
        "spec basic/patterns/snapshots#deltas",
        "A tool's patch that does not apply raises; none of it is sent.",
    ),
    "state.agent": ("spec events/state", "An agent's own state events count; a delta that does not apply is skipped."),
    "state.copies": ("issue 3, item 6", "The state changes by events only."),
    "emit.activity": ("issue 3, item 6; spec events/activity", "A tool sends activities while it works."),
    "emit.illegal": ("design 5, promise 2", "An event of a tool that is illegal fails that call and nothing else."),
    "emit.late": (_PROMISE_1, "What a tool sends after the end of the run is dropped."),
}

SUBAGENTS = {
    "sub.attributed": ("spec events/subagents#attribution", "All of a subagent carries its id, and nothing else does."),
    "sub.nested": ("spec events/subagents#nesting-and-parallelism", "A subagent's subagent names its parent."),
    "sub.parallel": ("spec events/subagents#nesting-and-parallelism", "Calls of subagents run side by side."),
    "sub.any-agent": ("issue 3, item 7", "Any agent can be one; its RUN_* and MESSAGES_SNAPSHOT stay inside."),
    "sub.fails": ("spec events/subagents#lifecycle", "A failure ends the subagent, closed, and not the run."),
    "sub.open-calls": (_TOOLS, "A subagent's unanswered calls are answered, not left to the client."),
    "sub.usage": ("spec events/subagents#lifecycle", "The run's usage includes its subagents'."),
    "sub.cancelled": ("spec events/subagents#termination", "A cancelled run ends its subagents."),
    "sub.suspended": ("spec events/subagents#termination", "A subagent that must ask is suspended on its interrupts."),
    "sub.resumed": ("spec events/subagents#attribution", "An answer takes it up under the same id, once."),
    "sub.restart": ("issue 5, item 1", "A subagent that waits when the process ends goes on in the next one."),
    "sub.tools": (
        "issue 3, item 7",
        "A tool of a subagent emits from any thread, ends nothing, and not after the end.",
    ),
    "sub.history": ("spec events/subagents#attribution", "Messages of subagents are not the assistant's."),
}

CONTEXT = {
    "context.silent": ("issue 3, item 9", "Without AGUI_CONTEXT_TOKENS nothing is counted and nothing is told."),
    "context.snapshot": ("issue 3, item 9", "context.snapshot says after each model call where the tokens are."),
    "context.asked": ("issue 5, item 8", "A caller asks for a smaller window, or for one where there is none."),
    "context.trim": ("issue 3, item 9", "History that does not fit goes turn by turn, and context.compacted says so."),
    "context.summarise": ("issue 3, item 9", "With summarise the model's summary stands for it."),
    "context.kept": ("issue 3, item 9", "The current run is sent even if it is too much by itself."),
    "skill.asked": ("issue 3, item 10", "forwardedProps.skill asks for a skill, also without messages."),
    "skill.unknown": ("issue 3, item 10", "An unknown skill is a VALIDATION_ERROR that names those there are."),
    "skill.loaded": ("issue 3, item 10", "The model reads a skill by name with load_skill."),
    "skill.listed": ("issue 3, item 10", "The capabilities name the skills."),
}

GROUPS = (
    LIFECYCLE,
    FAILURES,
    FORMS,
    CANCEL,
    READING,
    BUSY,
    DISCONNECT,
    LIMITS,
    SCOPE,
    HTTP,
    SOCKET,
    STATE,
    SUBAGENTS,
    CONTEXT,
    ASSISTANT,
    APPROVALS,
    GOALS,
    MEMORY,
    SPEED,
    BUDGETS,
    DURABLE,
    THREADS,
    FEEDBACK,
    TELEMETRY,
)

REQUIREMENTS: dict[str, Requirement] = {key: Requirement(*row) for group in GROUPS for key, row in group.items()}
