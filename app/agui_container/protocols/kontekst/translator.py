"""One run of kontekst: its commands as AG-UI, and AG-UI events as its events.

A kontekst run can consist of several AG-UI runs: each approval ends one, and its answer begins the next.

Rule: every run of this protocol needs an approval for every tool, and a denial cancels the run, also one by a client of
another protocol.

Rule: pure translation, in kontekst's order: started, deltas, turn_completed and context_snapshot, tools_proposed,
tool_started, tool_completed or tool_failed, tools_completed, and one of completed, cancelled, failed at the end.
Each call has at most one start, and one end after it. A result is sent as soon as it arrives.

Every sum of a context snapshot holds. The remaining tokens are the size minus the total, and are negative if the
context is overdrawn. A context whose size is unknown has the largest size that a field can hold, because clients read 0
as an exhausted context and divide by it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ag_ui.core import PROTOCOL_VERSION, Context, EventType, RunAgentInput, UserMessage
from msgspec import Struct

from agui_container.protocol.errors import validation_error
from agui_container.protocols.conversation.approvals import ApprovalDecision, Verdict, decision
from agui_container.protocols.conversation.events import Completed, Event, Failed, Outcome, is_failure
from agui_container.protocols.conversation.pending import Answer, PendingCalls
from agui_container.protocols.conversation.translator import Cancellation, Opening, Translator
from agui_container.protocols.gen import kontekst_pb2 as pb
from agui_core.content import text_of

SNAPSHOT = "context.snapshot"

UNBOUNDED = 2**31 - 1
"""A context budget that no prompt exceeds, and the size of a context that is unknown: the largest ``int32``."""

SOURCES = {"run": "memory", "history": "history"}

ROLES = {"reasoning": "assistant", "developer": "system", "activity": "assistant"}
"""Kontekst's roles for those roles of AG-UI that kontekst does not know."""

UNKNOWN = pb.ContextSnapshot(
    context_size=UNBOUNDED, remaining_tokens=UNBOUNDED, history_budget=UNBOUNDED, total_messages=1
)
"""The context of an agent that does not report it."""

CUT_OFF = "Error: the run ended before this call."
"""Error of a call that has started and has no result when its run ends."""

BUDGET = {"contextTokens": UNBOUNDED}
"""The assistant counts tokens for context snapshots only if it has a budget."""

PROPS = {"approvals": {"ask": "all", "onDenial": "cancel"}, "budget": BUDGET}

FIELD_NAMES = {
    "threadId": "start.session_id",
    "messages": "start.prompt",
    "context": "start.working_dir",
    "forwardedProps.agent": "start.agent_name",
    "forwardedProps.skill": "start.skill",
    "forwardedProps.skill.name": "start.skill.name",
    "forwardedProps.skill.arguments": "start.skill.arguments",
    "resume": "approve_tool.call_id",
    "resume.payload.reason": "deny_tool.reason",
}


class RunStart(Struct, frozen=True):
    """A start command, the id of its message, and the fields of ``forwardedProps`` that choose its agent."""

    command: pb.StartRunCommand
    message_id: str
    choice: Mapping[str, object] = {}


class KontekstTranslator(Translator[RunStart, pb.RunCommand, pb.RunEvent]):
    """Translates one run. The protocol has no event for a decision that is late."""

    field_names = FIELD_NAMES

    def __init__(self, run_id: str, session_id: str, agent_name: str) -> None:
        self.run_id = run_id
        self.session_id = session_id
        self.agent_name = agent_name
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._last = "", ""
        self._is_in_turn = False
        self._context = UNKNOWN
        self._open_calls: set[str] = set()
        """Ids of the turn's calls that have no result yet."""
        self._proposed: dict[str, bool] = {}
        """Ids of the turn's proposed calls. False for a question of an agent, which has neither start nor end."""
        self._started: dict[str, bool] = {}
        """Ids of the turn's calls that have started. True for one that has ended."""
        self._has_open_tools = False
        """True from the first result of a turn until ``tools_completed``."""

    def open(self, request: RunStart) -> Opening[pb.RunEvent]:
        started = pb.RunStartedEvent(run_id=self.run_id, session_id=self.session_id, agent_name=self.agent_name)
        first = run_input(request, self.session_id, self.run_id)
        return Opening(first, request.command.ByteSize(), [pb.RunEvent(started=started)])

    def feed(self, kind: EventType, event: Event) -> list[pb.RunEvent]:  # noqa: PLR0911 - a case for each kind
        """Of a subagent only the results of proposed calls are shown."""
        if event.get("subagentRunId") is not None:
            is_shown = kind is EventType.TOOL_CALL_RESULT and event["toolCallId"] in self._proposed
            return self._call_ended(event) if is_shown else []
        match kind:
            case EventType.TEXT_MESSAGE_CONTENT:
                begun = self._begin_turn()
                self._content.append(event["delta"])
                return [*begun, pb.RunEvent(token=pb.TokenDeltaEvent(text=event["delta"]))]
            case EventType.REASONING_MESSAGE_CONTENT:
                begun = self._begin_turn()
                self._reasoning.append(event["delta"])
                return [*begun, pb.RunEvent(reasoning=pb.ReasoningDeltaEvent(text=event["delta"]))]
            case EventType.TOOL_CALL_START:
                begun = self._begin_turn()
                self._open_calls.add(event["toolCallId"])
                return begun
            case EventType.CUSTOM if event.get("name") == SNAPSHOT:
                context = read_snapshot(event.get("value"))
                self._context = context or UNKNOWN
                return self._turn_completed() if context else []
            case EventType.TOOL_CALL_RESULT:
                return [*self._turn_completed(), *self._call_ended(event)]
            case EventType.RUN_FINISHED:
                return self._turn_completed()
        return []

    # --- proposed calls ---

    def ask(self, pending: PendingCalls) -> list[pb.RunEvent]:
        self._proposed |= {request.call_id: request.has_call for request in pending.approvals.values()}
        calls = [
            pb.ProposedToolCall(
                call_id=request.call_id, name=request.name, arguments_json=request.arguments, preview=request.preview
            )
            for request in pending.approvals.values()
        ]
        return [pb.RunEvent(tools_proposed=pb.ToolsProposedEvent(calls=calls))]

    def answers(self, message: pb.RunCommand) -> Sequence[Answer | Cancellation]:
        match message.WhichOneof("command"):
            case "approve_tool":
                return [decision(message.approve_tool.call_id, is_approved=True)]
            case "deny_tool":
                return [decision(message.deny_tool.call_id, is_approved=False, reason=message.deny_tool.reason)]
            case "cancel":
                return [Cancellation()]
        return []

    def settle(self, answers: Sequence[Answer]) -> list[pb.RunEvent]:
        """Start the approved calls. Only results tell which calls another client has approved."""
        approved = [it.call_id for it in answers if isinstance(it, ApprovalDecision) and it.verdict is Verdict.APPROVED]
        return [started for call_id in approved if self._proposed[call_id] for started in self._call_started(call_id)]

    def end(self, outcome: Outcome) -> list[pb.RunEvent]:
        """A call that has started and has no result fails."""
        cut_off = [_tool_failed(call_id, CUT_OFF) for call_id, has_ended in self._started.items() if not has_ended]
        self._has_open_tools = self._has_open_tools or bool(cut_off)
        return [*cut_off, *self._tools_completed(), self._last_event(outcome)]

    def _last_event(self, outcome: Outcome) -> pb.RunEvent:
        match outcome:
            case Failed(error=error):
                return pb.RunEvent(failed=pb.RunFailedEvent(run_id=self.run_id, error=error.message))
            case Completed():
                content, reasoning = self._last
                completed = pb.RunCompletedEvent(run_id=self.run_id, content=content, reasoning=reasoning)
                return pb.RunEvent(completed=completed)
        return pb.RunEvent(cancelled=pb.RunCancelledEvent(run_id=self.run_id))

    # --- a turn of the model ---

    def _begin_turn(self) -> list[pb.RunEvent]:
        """Begin a turn unless one is open. All tools of the previous turn have ended by then."""
        if self._is_in_turn:
            return []
        self._is_in_turn = True
        self._content, self._reasoning = [], []
        completed = self._tools_completed()
        self._open_calls, self._proposed, self._started = set(), {}, {}
        return completed

    def _turn_completed(self) -> list[pb.RunEvent]:
        if not self._is_in_turn:
            return []
        self._is_in_turn = False
        self._last = content, reasoning = "".join(self._content), "".join(self._reasoning)
        context, self._context = self._context, UNKNOWN
        completed = pb.TurnCompletedEvent(content=content, reasoning=reasoning, context=context)
        return [
            pb.RunEvent(turn_completed=completed),
            pb.RunEvent(context_snapshot=pb.ContextSnapshotEvent(context=context)),
        ]

    # --- tools ---

    def _call_started(self, call_id: str) -> list[pb.RunEvent]:
        if call_id in self._started:
            return []
        self._started[call_id] = False
        return [pb.RunEvent(tool_started=pb.ToolExecutionStartedEvent(call_id=call_id))]

    def _call_ended(self, result: Event) -> list[pb.RunEvent]:
        """Return the end of a call, and the end of the turn's tools if this is the last one."""
        call_id, text, has_failed = result["toolCallId"], text_of(result.get("content")), is_failure(result)
        completed = pb.RunEvent(tool_completed=pb.ToolExecutionCompletedEvent(call_id=call_id, output=text))
        events = [_tool_failed(call_id, text)] if has_failed else [*self._call_started(call_id), completed]
        self._has_open_tools = True
        self._open_calls.discard(call_id)
        if call_id in self._started:
            self._started[call_id] = True
        return events if self._open_calls else [*events, *self._tools_completed()]

    def _tools_completed(self) -> list[pb.RunEvent]:
        if not self._has_open_tools:
            return []
        self._has_open_tools = False
        return [pb.RunEvent(tools_completed=pb.ToolsCompletedEvent())]


def _tool_failed(call_id: str, error: str) -> pb.RunEvent:
    return pb.RunEvent(tool_failed=pb.ToolExecutionFailedEvent(call_id=call_id, error=error))


def run_input(start: RunStart, thread_id: str, run_id: str) -> RunAgentInput:
    """A skill without a prompt has its arguments as the user's message, so that the thread keeps them."""
    command = start.command
    skill = {"name": command.skill.name, "arguments": command.skill.arguments} if command.HasField("skill") else None
    if not command.prompt and skill is None:
        raise validation_error("start: a prompt or a skill is expected.")
    text = command.prompt or command.skill.arguments or f"Use the skill {command.skill.name}."
    prompt = UserMessage(id=start.message_id, role="user", content=text)
    folder = Context(description="The user's working directory", value=command.working_dir)
    return RunAgentInput(
        thread_id=thread_id,
        run_id=run_id,
        protocol_version=PROTOCOL_VERSION,
        messages=[prompt],
        tools=[],
        context=[folder] if command.working_dir else [],
        forwarded_props={**PROPS, **start.choice, **({"skill": skill} if skill else {})},
    )


def snapshot(value: Mapping[str, Any]) -> pb.ContextSnapshot:
    """Translate the value of a ``context.snapshot`` event. Messages that it only counts are one row for each role."""
    size = min(value["contextSize"], UNBOUNDED)
    fixed = value["systemTokens"] + value["toolTokens"] + value["runTokens"]
    rows = [pb.MessageStats(role="system", tokens=value["systemTokens"], source="system")]
    rows += [
        pb.MessageStats(role=ROLES.get(row["role"], row["role"]), tokens=row["tokens"], source=SOURCES[row["source"]])
        for row in (*value.get("olderMessages", ()), *value["messages"])
    ]
    return pb.ContextSnapshot(
        context_size=size,
        system_tokens=value["systemTokens"],
        tool_tokens=value["toolTokens"],
        history_tokens=value["historyTokens"],
        memory_tokens=value["runTokens"],
        total_tokens=value["totalTokens"],
        remaining_tokens=size - value["totalTokens"],
        history_messages=value["historyMessages"],
        memory_messages=value["runMessages"],
        total_messages=1 + value["historyMessages"] + value["runMessages"],
        history_budget=size - fixed,
        messages=rows,
    )


def read_snapshot(value: object) -> pb.ContextSnapshot | None:
    """Translate an event of an agent, or return None if an agent of somebody's own has given it another form."""
    if not isinstance(value, Mapping):
        return None
    try:
        return snapshot(value)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
