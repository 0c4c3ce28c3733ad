"""One turn of a roz session: the client's answers as AG-UI, and AG-UI events as roz's responses.

A turn is the answer to one user message. A turn can consist of several AG-UI runs: tools of the client and approvals
end one run, and their results begin the next.

Rule: pure translation. Events of subagents are not shown here, but for their approvals and the results of approved
calls; ``team`` translates the others.
"""

from collections.abc import Callable, Mapping, Sequence

from ag_ui.core import EventType

from agui_container.protocol.errors import validation_error
from agui_container.protocols.conversation.approvals import ApprovalDecision, ApprovalRequest, Verdict
from agui_container.protocols.conversation.events import (
    Cancelled,
    Event,
    Failed,
    Outcome,
    Unanswered,
    is_denied,
)
from agui_container.protocols.conversation.pending import Answer, ClientToolCall, PendingCalls, call_id_of
from agui_container.protocols.conversation.translator import Cancellation, Opening, Translator
from agui_container.protocols.gen import agent_pb2 as pb
from agui_container.protocols.roz.client_messages import permission_answer, tool_message
from agui_container.protocols.roz.options import PermissionRule, rule_for
from agui_container.protocols.roz.run_inputs import MAX_TOOLS, TIMEOUT_MS, RozTurn, ToolsByName
from agui_container.protocols.roz.server_messages import (
    APPROVED_ELSEWHERE,
    CANCELLED,
    DENIED,
    DENIED_ELSEWHERE,
    EXPIRED,
    UNKNOWN_ELSEWHERE,
    Responses,
    RozEncoder,
    Usage,
    approved_outcome,
    arguments_of,
    struct_of,
)
from agui_container.run.policy import ThreadCondition
from agui_core.content import text_of

THINKING, CALLING, WAITING, IDLE = "thinking", "calling_tool", "waiting_approval", "idle"
FULL, MINI = "full", "mini"
"""Presence of the agent. It is never ``hidden``, because dismissing the chat is the decision of the client."""

STOP_REASONS = {"length": "max_tokens", "filtered": "content_filter"}
"""Roz's stop reasons by those of the model, for an early stop."""

MAX_SUMMARY = 500
"""Number of characters of a result that are shown."""

FIELD_NAMES = {
    "threadId": "agui-thread-id",
    "messages": "user_message.content",
    "forwardedProps.aiMode": "user_message.ai_mode",
    "forwardedProps.model": "start.model",
    "forwardedProps.budget": "start.max_context_tokens",
    "forwardedProps.environmentId": "start.environment_id",
    "forwardedProps.hostId": "start.host_id",
    "resume": "permission_decision.tool_call_id",
    "resume.payload.editedArgs": "permission_decision.modifier",
    "resume.payload.reason": "permission_decision.reason",
}


class RozTranslator(Translator[RozTurn, pb.SessionRequest, pb.SessionResponse]):
    field_names = FIELD_NAMES

    def __init__(
        self,
        wire: RozEncoder,
        message_id: str,
        tools: ToolsByName,
        permissions: Sequence[PermissionRule],
        now: Callable[[], float],
    ) -> None:
        self.usage = Usage()
        self.last_message_id = ""
        self.context: tuple[int, int] | None = None
        """Tokens and size of the model's context, if the agent has told them."""
        self._wire = wire
        self._message_id = message_id
        self._tools = tools
        self._permissions = permissions
        self._now = now
        self._stop_reason = "end_turn"
        self._is_cancelled = False
        """True once the client has cancelled a turn that waited. The events that follow are not shown."""
        self._names: dict[str, str] = {}
        """Names of the calls that have no result yet, by call id. Another session may have begun some of them."""
        self._started: set[str] = set()
        """Ids of the server's calls that have started and not finished."""
        self._requested: set[str] = set()
        """Ids of the calls that the client is to run."""
        self._approvals: dict[str, ApprovalRequest] = {}
        """Approvals that wait, by call id."""
        self._decided_elsewhere: dict[str, str] = {}
        """Names of the calls whose approvals another client has answered, by call id."""
        self._activity = "", ""
        self._presence = ""
        self._run_began_at = now()
        self._run_end: Event = {}
        """Last event of a run, until its tokens are counted."""

    def begin(self, index: int) -> Responses:
        """Begin the turn, before its message is admitted."""
        self._wire.correlation_id = self._message_id
        return [*self._wire.encode(pb.TurnStartedPayload(turn_index=index)), *self._set_activity(THINKING)]

    def open(self, request: RozTurn) -> Opening[pb.SessionResponse]:
        # A model may have called a tool before the client has removed it. Any number may be removed during a turn.
        earlier = [(name, tool) for name, tool in self._tools.items() if name not in request.tools]
        self._tools = dict([*earlier, *request.tools.items()][-2 * MAX_TOOLS :])
        timeouts = {name: tool.timeout_ms for name, tool in self._tools.items()}
        condition = ThreadCondition(is_empty=request.has_history)
        return Opening(request.run_input, request.size, condition=condition, timeouts_ms=timeouts)

    def feed(self, kind: EventType, event: Event) -> Responses:  # noqa: C901, PLR0911 - a case for each kind
        if self._is_cancelled:
            return []
        if event.get("subagentRunId") is not None:
            return self._subagent_call_finished(event) if kind is EventType.TOOL_CALL_RESULT else []
        match kind:
            case EventType.TEXT_MESSAGE_CONTENT:
                self.last_message_id = event["messageId"]
                return [*self._set_activity(THINKING), *self._wire.text(self._message_id, event["delta"])]
            case EventType.REASONING_MESSAGE_CONTENT:
                return [*self._set_activity(THINKING), *self._wire.thinking(self._message_id, event["delta"])]
            case EventType.TOOL_CALL_START:
                self._names[event["toolCallId"]] = event["toolCallName"]
            case EventType.TOOL_CALL_END:
                return self._tool_call_ended(event["toolCallId"])
            case EventType.TOOL_CALL_RESULT:
                return self._call_finished(event)
            case EventType.CUSTOM:
                return self._custom_event(event["name"], event.get("value"))
            case EventType.RUN_STARTED:
                self._run_began_at = self._now()
            case EventType.RUN_FINISHED | EventType.RUN_ERROR:
                self._run_end = event
        return []

    # --- answers of the client ---

    def ask(self, pending: PendingCalls) -> Responses:
        self._approvals = dict(pending.approvals)
        self._names |= {request.call_id: request.name for request in pending.approvals.values()}
        responses = [*self._resolve_unknown(), *self._count_usage("tool_use")]
        for call in pending.tools.values():
            responses += self._request_tool(call, pending)
        for request in pending.approvals.values():
            reason = ": ".join(filter(None, (request.name, request.explanation)))
            requested = pb.ApprovalRequestedPayload(
                approval_id=request.call_id,
                action=request.name,
                reason=request.explanation,
                timeout_secs=request.timeout_seconds(self._now()),
            )
            responses += [*self._set_activity(WAITING, request.call_id, reason), *self._wire.encode(requested)]
        return responses

    def answers(self, message: pb.SessionRequest) -> Sequence[Answer | Cancellation]:
        return answers_of(message)

    def refuse(self, answer: Answer) -> Responses:
        field = "permission_decision" if isinstance(answer, ApprovalDecision) else "tool_result"
        message = f"{field}: no call '{call_id_of(answer)[:100]}' waits for it."
        return self._wire.session_rejected(validation_error(message))

    def settle(self, answers: Sequence[Answer]) -> Responses:
        responses: Responses = []
        for answer in answers:
            if isinstance(answer, ApprovalDecision):
                responses += self._resolve(answer)
            else:
                self._requested.discard(answer.tool_call_id)
                responses += self._tool_finished(answer.tool_call_id, text_of(answer.content))
        return responses if self._is_cancelled else [*responses, *self._set_activity(THINKING)]

    def _resolve(self, answer: ApprovalDecision) -> Responses:
        call_id, request = answer.call_id, self._approvals.pop(answer.call_id)
        match answer.verdict:
            case Verdict.APPROVED:
                outcome = approved_outcome(request.arguments, answer.edited_arguments)
                return [*self._approval_resolved(call_id, outcome), *self._tool_started(call_id, request.name)]
            case Verdict.ELSEWHERE:
                self._decided_elsewhere[call_id] = request.name
                return []
            case Verdict.CANCELLED:
                self._is_cancelled = True
                return self._approval_resolved(call_id, CANCELLED)
        return self._approval_resolved(call_id, EXPIRED if answer.verdict is Verdict.EXPIRED else DENIED)

    def _approval_resolved(self, call_id: str, outcome: Mapping[str, object]) -> Responses:
        return self._wire.encode(pb.ApprovalResolvedPayload(approval_id=call_id, outcome=struct_of(outcome)))

    def _resolve_elsewhere(self, result: Event) -> Responses:
        """Resolve the approval of a call that another client has answered. The call's result tells the decision."""
        call_id = result["toolCallId"]
        name = self._decided_elsewhere.pop(call_id, None)
        if name is None:
            return []
        is_approved = not is_denied(result)
        resolved = self._approval_resolved(call_id, APPROVED_ELSEWHERE if is_approved else DENIED_ELSEWHERE)
        return [*resolved, *(self._tool_started(call_id, name) if is_approved else ())]

    def _resolve_unknown(self) -> Responses:
        """Resolve the approvals that another client has answered if no result tells the decision."""
        answered, self._decided_elsewhere = [it for it in self._decided_elsewhere if it not in self._approvals], {}
        return [it for call_id in answered for it in self._approval_resolved(call_id, UNKNOWN_ELSEWHERE)]

    # --- the end ---

    def end(self, outcome: Outcome) -> Responses:
        match Cancelled() if self._is_cancelled else outcome:
            case Failed(error=error):
                self._approvals, self._stop_reason = {}, "error"
                responses = [*self._count_usage("error"), *self._resolve_unknown(), *self._wire.session_rejected(error)]
            case Cancelled():
                self._decided_elsewhere |= dict.fromkeys(self._approvals, "")  # another client has been faster
                self._approvals = {}
                responses = [*self._resolve_unknown(), *self._count_usage(self._stop_reason)]
                self._stop_reason = "cancelled"
            case Unanswered():
                responses, self._stop_reason = [], "tool_use"
            case _:
                responses = [*self._resolve_unknown(), *self._count_usage(self._stop_reason)]
        finished = self._wire.turn_finished(self._message_id, self.usage, self._stop_reason)
        return [*responses, *finished, *self._set_activity(IDLE)]

    def _count_usage(self, stop_reason: str) -> Responses:
        """Add the tokens of the run that has ended to the turn's, and report its model calls."""
        event, self._run_end = self._run_end, {}
        latency_ms = int((self._now() - self._run_began_at) * 1000)
        responses: Responses = []
        for row in event.get("usage") or ():
            usage = usage_of(row)
            self.usage += usage
            completed = pb.ModelCallCompletedPayload(
                model_id=row.get("model") or "",
                provider=row.get("provider") or "",
                input_tokens=usage["input_tokens"],
                output_tokens=usage["output_tokens"],
                latency_ms=latency_ms,
                cache_hit_tokens=usage["cache_read_tokens"],
                stop_reason=stop_reason,
            )
            responses += self._wire.encode(completed)
        return responses

    # --- tools ---

    def _request_tool(self, call: ClientToolCall, pending: PendingCalls) -> Responses:
        if call.call_id in self._requested:
            return self._set_activity(CALLING, call.name)
        self._requested.add(call.call_id)
        try:
            arguments = arguments_of(call.arguments)
        except ValueError as error:
            pending.fail(call.call_id, f"Error: the client cannot get the arguments of this call: {error}.")
            return self._tool_started(call.call_id, call.name)
        requested = self._wire.tool_requested(call.call_id, call.name, arguments, call.timeout_ms or TIMEOUT_MS)
        return [*self._set_activity(CALLING, call.name), *requested]

    def _tool_call_ended(self, call_id: str) -> Responses:
        """Report a server tool as started, unless it needs an approval. Tools of the client are requested later."""
        name = self._names.get(call_id)
        if name is None or name in self._tools or rule_for(self._permissions, name).policy != "allow":
            return []
        return self._tool_started(call_id, name)

    def _tool_started(self, call_id: str, name: str) -> Responses:
        activity = self._set_activity(CALLING, name)
        if call_id in self._started:
            return activity
        self._started.add(call_id)
        category = (
            self._tools[name].category if name in self._tools else rule_for(self._permissions, name).category or ""
        )
        started = pb.ToolCallStartedPayload(call_id=call_id, tool_name=name, category=category)
        return [*activity, *self._wire.encode(started)]

    def _call_finished(self, result: Event) -> Responses:
        """Report the result of a call. The server's tool was run if it has the same name as a tool of the client."""
        call_id, responses = result["toolCallId"], self._resolve_elsewhere(result)
        name = self._names.get(call_id, "")
        if name in self._tools:
            responses += self._tool_started(call_id, name)
        return [*responses, *self._tool_finished(call_id, text_of(result.get("content")))]

    def _subagent_call_finished(self, result: Event) -> Responses:
        """Report the result of a subagent's call if its start was reported."""
        call_id, resolved = result["toolCallId"], self._resolve_elsewhere(result)
        if call_id not in self._started:
            return resolved
        return [*resolved, *self._tool_finished(call_id, text_of(result.get("content")))]

    def _tool_finished(self, call_id: str, result: str) -> Responses:
        self._started.discard(call_id)
        name = self._names.pop(call_id, "")
        finished = pb.ToolCallFinishedPayload(call_id=call_id, tool_name=name, result_summary=result[:MAX_SUMMARY])
        responses = self._wire.encode(finished)
        is_calling = self._activity[0] == CALLING and (self._started or self._requested)
        return responses if is_calling else [*responses, *self._set_activity(THINKING)]

    # --- activity ---

    def _custom_event(self, name: str, value: object) -> Responses:
        details = value if isinstance(value, Mapping) else {}
        match name:
            case "context.compacted":
                return self._wire.compacted(details)
            case "context.snapshot":
                self.context = int(details.get("totalTokens", 0)), int(details.get("contextSize", 0))
            case "model.stopped":
                self._stop_reason = STOP_REASONS.get(str(details.get("reason")), self._stop_reason)
        return []

    def _set_activity(self, state: str, detail: str = "", reason: str = "") -> Responses:
        """Report changes of activity and presence. ``reason`` is for people: release 0.2 reads it in the presence."""
        if self._activity == (state, detail):
            return []
        self._activity = state, detail
        responses = self._wire.activity(state, detail, reason or detail)
        level = MINI if state == CALLING else FULL
        if self._presence != level or reason:
            self._presence = level
            responses += self._wire.presence(level, reason or state)
        return responses


def answers_of(message: pb.SessionRequest) -> Sequence[Answer | Cancellation]:
    match message.WhichOneof("request"):
        case "tool_result":
            return [tool_message(message.tool_result)]
        case "permission_decision":
            return [permission_answer(message.permission_decision)]
        case "cancel_turn":
            return [Cancellation()]
    return []


def usage_of(row: Event) -> Usage:
    """Translate token counts. AG-UI's input tokens include cache reads and writes, and roz's do not."""
    cached, written = row.get("cachedInputTokens") or 0, row.get("cacheWriteInputTokens") or 0
    return Usage(
        input_tokens=max(0, (row.get("inputTokens") or 0) - cached - written),
        output_tokens=row.get("outputTokens") or 0,
        cache_read_tokens=cached,
        cache_creation_tokens=written,
    )
