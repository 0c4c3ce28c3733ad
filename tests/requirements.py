"""The manifest: every promised behaviour, the source of the promise, and one sentence.

A test cites what it shows with ``@requirement("id")``; ``test_manifest`` checks that nothing is cited that is not here,
and that nothing is here that no test shows. A source is a section of a document in this repository, or ``spec …``: a
page of the AG-UI specification 1.1.
"""

from typing import NamedTuple

import pytest

from tests.requirements_assistant import APPROVALS, ASSISTANT
from tests.requirements_conversations import FEEDBACK, THREADS
from tests.requirements_deploy import DEPLOY
from tests.requirements_goals import BUDGETS, GOALS
from tests.requirements_limits import CALLERS
from tests.requirements_memory import MEMORY
from tests.requirements_protocols import PROTOCOLS
from tests.requirements_security import AUTH
from tests.requirements_speed import SPEED
from tests.requirements_start import START
from tests.requirements_telemetry import TELEMETRY
from tests.requirements_terminal import TERMINAL
from tests.requirements_threads import DURABLE
from tests.requirements_transports import HTTP, SOCKET


class Requirement(NamedTuple):
    """A promised behaviour: the document that promises it, and one sentence."""

    source: str
    sentence: str


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Say which behaviours a test shows."""
    return pytest.mark.requirement(*ids)


_PROMISE_1 = "docs/architecture.md#guarantees-and-the-code-behind-them"
_TOOLS = "spec events/tool-calls#frontend-tools"

LIFECYCLE = {
    "run.legal": (_PROMISE_1, "The log of a run is legal for any items, errors and cancellations of its agent."),
    "run.refused": (
        _PROMISE_1,
        "A refused event of a tool opens no stream, and an event that cannot be encoded ends none.",
    ),
    "run.older": ("spec basic/versioning", "A client without `protocolVersion` gets no event that AG-UI 1.0 added."),
    "run.starts": (_PROMISE_1, "A run starts with RUN_STARTED, which carries protocolVersion and the input's ids."),
    "run.parent": ("spec events/lifecycle", "RUN_STARTED carries the input's parentRunId."),
    "run.succeeds": (_PROMISE_1, "An agent that returns ends its run with RUN_FINISHED and outcome success."),
    "run.stamped": ("spec events/lifecycle", "The boundary events carry a timestamp in milliseconds."),
    "run.result": ("spec events/lifecycle", "The result of an agent's own RUN_FINISHED is kept."),
    "run.own-start": (_PROMISE_1, "An agent's own RUN_STARTED as its first event is absorbed."),
    "run.second-start": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "A RUN_STARTED later on is the agent's error.",
    ),
    "run.ids": ("spec run-input", "RUN_FINISHED carries the run's ids whatever the agent put there."),
    "run.returns-early": (_PROMISE_1, "Entities that an agent leaves open when it returns are closed."),
    "run.over-emits": (_PROMISE_1, "Items after an agent's terminal event are dropped."),
    "run.events": ("docs/agents.md", "All 31 event types pass through; chunks leave as START, CONTENT, END."),
    "run.said": ("docs/agents.md", "Text by its message's id is TEXT_MESSAGE_CONTENT of that message."),
    "run.extras": ("docs/agents.md", "Fields of an event that AG-UI does not know are kept."),
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
    "run.made-late": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "Building the server makes no id and reads no clock.",
    ),
    "run.bad-usage": ("spec events/lifecycle#token-usage", "Usage that cannot be added up is left out, not fatal."),
}

FAILURES = {
    "fail.before": (_PROMISE_1, "An agent that raises before its first event ends with RUN_STARTED, RUN_ERROR."),
    "fail.middle": (_PROMISE_1, "An agent that raises in the middle has everything closed before RUN_ERROR."),
    "fail.after": (_PROMISE_1, "An agent that raises after its RUN_FINISHED changes nothing."),
    "fail.reported": (_PROMISE_1, "An agent's own RUN_ERROR ends the run with what it says."),
    "fail.subagent": ("spec events/subagents", "A failure ends open subagents with SUBAGENT_ERROR."),
    "fail.illegal": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "An illegal event is the agent's error: what is open is closed, then RUN_ERROR.",
    ),
    "fail.not-an-event": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "An item that is neither an event nor a string is the agent's error.",
    ),
    "fail.unencodable": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "An event that cannot be sent is the agent's error, and nothing of it leaves.",
    ),
    "fail.safe": ("docs/http-api.md#errors", "Exception text never reaches a client."),
    "fail.shown": ("docs/http-api.md#errors", "The code and message of an AppError reach the client."),
    "fail.request-id": (
        "docs/http-api.md#errors",
        "RUN_ERROR carries the request id under which the log has the cause.",
    ),
    "clock.jump": ("docs/reliability.md", "A clock that jumps ends no run, and no reader sees it."),
    "process.stopped": ("docs/reliability.md", "A process that is stopped and continued sends its streams on."),
    "fuzz.bodies": (
        "docs/reliability.md",
        "Any body, frame or gRPC message is read, or refused with an error that says why.",
    ),
    "fuzz.requests": (
        "docs/reliability.md",
        "Random requests over each transport get an answer that is no fault of the server.",
    ),
    "fail.exit": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "SystemExit, KeyboardInterrupt and CancelledError of an agent end its run only.",
    ),
}

LOGS = {
    "log.end": ("docs/observability.md#logs", "A run that has ended is one line of the log, whatever the transport."),
    "log.dropped-history": (
        "docs/threads.md",
        "Messages of a history that no model sees are counted in one line of the log.",
    ),
    "log.fault": ("docs/agents.md#errors", "The log names the line of the agent's own code that is at fault."),
}

FORMS = {
    "agent.strings": ("docs/agents.md", "Strings stream as one assistant message."),
    "agent.sync": ("docs/agents.md", "A plain generator function is an agent."),
    "agent.object": ("docs/agents.md", "An object with run(input) is an agent."),
    "agent.context": ("docs/agents.md", "ctx gives thread, run, session and the allowed headers."),
    "agent.cookies": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "Cookies and transport headers never reach an agent.",
    ),
    "agent.input": ("docs/agents.md", "Unknown fields of the body are kept and reach the agent."),
    "agent.defaults": ("docs/agents.md", "Optional fields that are absent have the value that absence means."),
    "agent.split": ("docs/websocket.md", "A long delta leaves in pieces that fit a WebSocket frame."),
    "agent.background": ("docs/http-api.md#routes", "Background work outlives its run and keeps the server busy."),
    "agent.last-state": ("docs/agents.md", "Background work reads the run's last state behind the run's end."),
    "agent.cancelled": ("docs/agents.md", "ctx.cancelled says when the run is over."),
}

CANCEL = {
    "cancel.closes": ("docs/agents.md", "A cancelled run closes everything and ends RUN_FINISHED, cancelled."),
    "cancel.at-once": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "A cancel ends the run for its readers even if the agent resists.",
    ),
    "cancel.idempotent": (
        "docs/http-api.md#routes",
        "Cancelling a run that is over changes nothing and says how it stands.",
    ),
    "cancel.queued": ("docs/http-api.md#commands", "A run that waits can be cancelled; it then starts and ends."),
    "cancel.thread": ("docs/http-api.md#commands", "Without runId the thread's active run is cancelled."),
    "cancel.unknown": ("docs/http-api.md#errors", "Cancelling what is not there is RUN_NOT_FOUND."),
    "cancel.in-input": ("docs/http-api.md#commands", "A cancel inside a RunAgentInput addresses its thread."),
}

READING = {
    "attach.replay": ("docs/http-api.md#commands", "Attaching replays what was sent and goes on live."),
    "attach.after": ("docs/http-api.md#routes", "Attaching after N begins with event N + 1."),
    "attach.ahead": ("docs/http-api.md#errors", "A cursor ahead of the run is a VALIDATION_ERROR."),
    "attach.thread": ("docs/http-api.md#commands", "Without runId the thread's active run is read, else its latest."),
    "attach.late": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "A reader that comes after the end sees the whole run.",
    ),
    "attach.same": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "Two readers of one run see the same.",
    ),
    "attach.unknown": ("docs/http-api.md#errors", "Attaching to what is not there is RUN_NOT_FOUND."),
    "attach.numbers": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "Events are numbered from 1 without gaps, the same for every reader.",
    ),
    "retry.joins": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "A retry of the same ids joins the run, which runs once.",
    ),
    "retry.ended": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "A retry after the end replays the run.",
    ),
    "retry.other-messages": (
        "docs/http-api.md",
        "The ids of a run with other messages are refused, wherever that run is or was.",
    ),
    "retry.forgotten": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "A retry of a run that is forgotten is refused, never run again.",
    ),
}

BUSY = {
    "busy.leaving": (
        "docs/configuration.md",
        "A request that arrives before the drop it follows waits a moment for it.",
    ),
    "busy.reject": ("docs/configuration.md", "A second run on a busy thread is THREAD_BUSY."),
    "busy.enqueue": ("docs/configuration.md", "With `enqueue` a second run waits and runs afterwards."),
    "busy.interrupt": ("docs/configuration.md", "With `interrupt` the first run is cancelled."),
    "busy.admitted": ("docs/configuration.md", "A run that is refused cancels nothing."),
    "busy.interrupt-queue": ("docs/configuration.md", "With `interrupt` the queued runs end too."),
    "busy.override": ("docs/configuration.md", "forwardedProps.onBusy overrides the policy for one request."),
    "busy.invalid": ("docs/configuration.md", "An unknown onBusy is a VALIDATION_ERROR."),
    "busy.bound": ("docs/architecture.md#guarantees-and-the-code-behind-them", "A thread's queue is bounded."),
    "busy.other": ("docs/architecture.md#guarantees-and-the-code-behind-them", "Another thread is not held up."),
    "busy.free": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "A thread is free again as soon as its run has ended.",
    ),
}

DISCONNECT = {
    "drop.cancel": ("docs/configuration.md", "With cancel, a run ends when its last reader leaves."),
    "drop.continue": ("docs/configuration.md", "With continue, a run goes on without readers."),
    "drop.grace": ("docs/configuration.md", "With grace, a run is cancelled when nobody came back in time."),
    "drop.returns": ("docs/configuration.md", "A reader that comes back in time keeps the run."),
    "drop.gives-way": (
        "docs/configuration.md",
        "During its grace a run is cancelled at once by a new run on its thread.",
    ),
    "drop.others": ("docs/configuration.md", "A reader that leaves while another stays changes nothing."),
}

LIMITS = {
    "limit.time": ("docs/configuration.md", "A run that takes too long ends with RUN_TIMEOUT."),
    "limit.size": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "A run that says too much ends with RUN_LIMIT_EXCEEDED.",
    ),
    "limit.all": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "When all runs together hold too much, a run that writes is ended.",
    ),
    "limit.open": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "More open runs than allowed are RATE_LIMIT_EXCEEDED.",
    ),
    "limit.kept": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "Only so many ended runs are kept; the oldest are forgotten first.",
    ),
    "limit.kept-bytes": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "Only so many bytes of ended runs are kept.",
    ),
    "limit.read": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "A run that somebody reads is not forgotten.",
    ),
    "drain.ends": ("docs/agents.md", "A drain ends open and waiting runs with SHUTTING_DOWN."),
    "drain.grace": ("docs/agents.md", "A run that ends within the drain's grace ends as it would have."),
    "drain.behind": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "A stop stores the ends of runs before events that the store is behind with.",
    ),
    "drain.unstored": (
        "docs/reliability.md",
        "A stop without the store ends every run for its readers, with a line of the log for each.",
    ),
    "drain.refuses": ("docs/agents.md", "New runs are refused with SHUTTING_DOWN while it drains."),
    "health.busy": ("docs/http-api.md#routes", "The server is busy while a run is open."),
    "health.stamp": ("docs/http-api.md#routes", "The time of the last update changes only when the status does."),
    "health.ready": ("docs/http-api.md#routes", "Before initialisation /ping says 503."),
}

SCOPE = {
    "scope.session": ("docs/configuration.md", "With scope session, another session's runs are not found."),
    "scope.threads": ("docs/configuration.md", "Threads and runs of two sessions may have the same ids."),
    "scope.none": ("docs/configuration.md", "With scope none, everybody sees all runs."),
    "command.capabilities": ("docs/http-api.md#commands", "The command capabilities says what is really configured."),
    "command.ping": ("docs/websocket.md", "The command ping is answered."),
    "command.in-input": ("docs/http-api.md#commands", "A command may come inside a RunAgentInput."),
    "command.foreign": (
        "docs/http-api.md#commands",
        "A framework's own forwardedProps.command reaches the agent untouched.",
    ),
    "command.invalid": ("docs/http-api.md#commands", "A command with a bad field is a VALIDATION_ERROR that names it."),
    "error.body": ("docs/http-api.md#errors", "Malformed input is a VALIDATION_ERROR before a run exists."),
    "error.large": ("docs/configuration.md", "A body that is too large is PAYLOAD_TOO_LARGE."),
    "error.integer": (
        "docs/architecture.md#ag-uis-rules-and-the-code-that-enforces-them",
        "An integer that no double holds is refused in a body and null in an event.",
    ),
    "error.harmless": ("docs/architecture.md#guarantees-and-the-code-behind-them", "A refused request harms no run."),
}


STATE = {
    "state.read": ("docs/operations.md", "A tool reads the state; none is the empty object."),
    "state.changed": (
        "docs/operations.md; spec events/state",
        "A tool's change is a delta or a snapshot, sent at once.",
    ),
    "state.thread": ("docs/operations.md", "A tool in a thread may do what one on the loop may."),
    "state.atomic": (
        "spec basic/patterns/snapshots#deltas",
        "A tool's patch that does not apply raises; none of it is sent.",
    ),
    "state.agent": ("spec events/state", "An agent's own state events count; a delta that does not apply is skipped."),
    "state.copies": ("docs/operations.md", "The state changes by events only."),
    "emit.activity": ("docs/operations.md; spec events/activity", "A tool sends activities while it works."),
    "emit.illegal": (
        "docs/architecture.md#guarantees-and-the-code-behind-them",
        "An event of a tool that is illegal fails that call and nothing else.",
    ),
    "emit.late": (_PROMISE_1, "Events that a tool sends after the end of the run are dropped."),
}

SUBAGENTS = {
    "sub.attributed": ("spec events/subagents#attribution", "All of a subagent carries its id, and nothing else does."),
    "sub.nested": ("spec events/subagents#nesting-and-parallelism", "A subagent's subagent names its parent."),
    "sub.parallel": ("spec events/subagents#nesting-and-parallelism", "Calls of subagents run side by side."),
    "sub.any-agent": ("docs/operations.md", "Any agent can be one; its RUN_* and MESSAGES_SNAPSHOT stay inside."),
    "sub.fails": ("spec events/subagents#lifecycle", "A failure ends the subagent, closed, and not the run."),
    "sub.open-calls": (_TOOLS, "A subagent's unanswered calls are answered, not left to the client."),
    "sub.usage": ("spec events/subagents#lifecycle", "The run's usage includes its subagents'."),
    "sub.cancelled": ("spec events/subagents#termination", "A cancelled run ends its subagents."),
    "sub.suspended": ("spec events/subagents#termination", "A subagent that must ask is suspended on its interrupts."),
    "sub.resumed": ("spec events/subagents#attribution", "An answer takes it up under the same id, once."),
    "sub.asks": ("docs/subagents.md", "What a caller demands of tool calls holds at every depth."),
    "sub.policy": ("docs/subagents.md", "The policy of an assistant holds for its subagents, whatever theirs is."),
    "sub.limits": ("docs/goals.md", "A caller's budget of tokens is that of the run with all its subagents."),
    "sub.restart": ("docs/operations.md", "A subagent that waits when the process ends goes on in the next one."),
    "sub.tools": (
        "docs/operations.md",
        "A tool of a subagent emits from any thread, ends nothing, and not after the end.",
    ),
    "sub.history": ("spec events/subagents#attribution", "Messages of subagents are not the assistant's."),
}

CONTEXT = {
    "context.silent": ("docs/operations.md", "Without AGUI_CONTEXT_TOKENS nothing is counted and nothing is told."),
    "context.snapshot": ("docs/operations.md", "context.snapshot says after each model call where the tokens are."),
    "context.asked": ("docs/operations.md", "A caller asks for a smaller window, or for one where there is none."),
    "context.trim": (
        "docs/operations.md",
        "History that does not fit goes turn by turn, and context.compacted says so.",
    ),
    "context.summarise": ("docs/operations.md", "With summarise the model's summary stands for it."),
    "context.kept": ("docs/operations.md", "The current run is sent even if it is too much by itself."),
    "skill.asked": ("docs/operations.md", "forwardedProps.skill asks for a skill, also without messages."),
    "skill.unknown": ("docs/operations.md", "An unknown skill is a VALIDATION_ERROR that names those there are."),
    "skill.loaded": ("docs/operations.md", "The model reads a skill by name with load_skill."),
    "skill.listed": ("docs/operations.md", "The capabilities name the skills."),
}

GROUPS = (
    LIFECYCLE,
    FAILURES,
    LOGS,
    FORMS,
    CANCEL,
    READING,
    BUSY,
    DISCONNECT,
    LIMITS,
    CALLERS,
    SCOPE,
    AUTH,
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
    DEPLOY,
    START,
    DURABLE,
    THREADS,
    FEEDBACK,
    TELEMETRY,
    TERMINAL,
    PROTOCOLS,
)

REQUIREMENTS: dict[str, Requirement] = {key: Requirement(*row) for group in GROUPS for key, row in group.items()}
