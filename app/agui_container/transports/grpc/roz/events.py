"""AG-UI events of one turn as roz's responses.

A turn is the answer to one user message. A turn can consist of several AG-UI runs: tools of the client and approvals
end one run, and their results begin the next.

Rule: pure translation. Events of subagents are not shown here, but for their approvals and the results of approved
calls; ``team`` translates the others.
"""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

from ag_ui.core import EventType
from msgspec import Struct

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.transports.grpc.gen.roz.v1 import agent_pb2 as pb
from agui_container.transports.grpc.interrupts import ApprovalRequest, Event, approval_requests, is_denied, text_of
from agui_container.transports.grpc.roz.outcomes import (
    APPROVED_ELSEWHERE,
    DENIED_ELSEWHERE,
    UNKNOWN_ELSEWHERE,
    Outcome,
)
from agui_container.transports.grpc.roz.requests import parameters_of
from agui_container.transports.grpc.roz.tools import TIMEOUT_MS, ToolsByName
from agui_container.transports.grpc.roz.wire import Permissions, Responses, RozEncoder, arguments_of

THINKING, CALLING, WAITING, IDLE = "thinking", "calling_tool", "waiting_approval", "idle"
FULL, MINI = "full", "mini"
"""Presence of the agent. It is never ``hidden``, because dismissing the chat is the decision of the client."""

STOP_REASONS = {"length": "max_tokens", "filtered": "content_filter"}
"""Roz's stop reasons by those of the model, for an early stop."""

MAX_SUMMARY = 500
"""Number of characters of a result that are shown."""

LOAD_SKILL = "load_skill"


class OpenToolCall(Struct):
    """A tool call of the model."""

    name: str
    arguments: str = ""


class ClientToolCall(Struct, frozen=True):
    """A tool call that the client must run. ``error`` is the reason why it cannot, or empty."""

    call_id: str
    name: str
    timeout_ms: int
    error: str = ""


class TurnEvents:
    """Responses of one turn.

    Args:
        tools: the client's tools in this turn.
        permissions: the server's tool policy.
        now: clock that returns Unix seconds.

    Attributes:
        tool_requests, approvals: calls that wait for the client, by call id.
        usage: tokens of the turn.
        last_message_id: id of the assistant's message in the thread, for feedback.
        context: tokens in the model's context and their budget, as far as they are known.
    """

    def __init__(
        self, wire: RozEncoder, message_id: str, tools: ToolsByName, permissions: Permissions, now: Callable[[], float]
    ) -> None:
        self.message_id = message_id
        self.tool_requests: dict[str, ClientToolCall] = {}
        self.approvals: dict[str, ApprovalRequest] = {}
        self.usage = pb.TokenUsage()
        self.last_message_id = ""
        self.context: tuple[int, int] | None = None
        self.stop_reason = "end_turn"
        self._wire = wire
        self._tools = tools
        self._permissions = permissions
        self._now = now
        self._calls: dict[str, OpenToolCall] = {}
        self._started: dict[str, str] = {}
        """Names of the server's calls that have started and not finished, by call id."""
        self._names: dict[str, str] = {}
        """Names of the calls that have waited for approval, by call id. Another session may have begun them."""
        self._decided_elsewhere: dict[str, str] = {}
        """Names of the calls whose approvals another client has answered, by call id."""
        self._activity = "", ""
        self._presence = ""
        self._run_began_at = now()

    @property
    def is_waiting(self) -> bool:
        """True if a call waits for the client."""
        return bool(self.tool_requests or self.approvals)

    def begin(self, index: int) -> Responses:
        """Begin the turn."""
        self._wire.correlation_id = self.message_id
        return [*self._wire.turn_started(index), *self._set_activity(THINKING)]

    def feed(self, kind: EventType, event: Event) -> Responses:  # noqa: C901, PLR0911 - a case for each kind
        """Translate one AG-UI event."""
        if event.get("subagentRunId") is not None:
            return self._subagent_call_finished(event) if kind is EventType.TOOL_CALL_RESULT else []
        match kind:
            case EventType.TEXT_MESSAGE_CONTENT:
                self.last_message_id = event["messageId"]
                return [*self._set_activity(THINKING), *self._wire.text(self.message_id, event["delta"])]
            case EventType.REASONING_MESSAGE_CONTENT:
                return [*self._set_activity(THINKING), *self._wire.thinking(self.message_id, event["delta"])]
            case EventType.TOOL_CALL_START:
                self._calls[event["toolCallId"]] = OpenToolCall(event["toolCallName"])
            case EventType.TOOL_CALL_ARGS if event["toolCallId"] in self._calls:
                self._calls[event["toolCallId"]].arguments += event["delta"]
            case EventType.TOOL_CALL_END:
                return self._tool_call_ended(event["toolCallId"])
            case EventType.TOOL_CALL_RESULT:
                return self._call_finished(event)
            case EventType.CUSTOM:
                return self._custom_event(event["name"], event.get("value"))
            case EventType.RUN_STARTED:
                self._run_began_at = self._now()
            case EventType.RUN_FINISHED:
                return self._finish_run(event)
            case EventType.RUN_ERROR:
                return [*self._count_usage(event, "error"), *self.fail(error_of(event))]
        return []

    def fail(self, error: AppError) -> Responses:
        """End the turn with an error."""
        self.stop_reason = "error"
        self._clear_pending()
        return [*self._resolve_unknown(), *self._wire.session_rejected(error)]

    def cancel(self, outcome: Outcome) -> Responses:
        """End the turn as cancelled, with the outcome of the approvals that wait."""
        self.stop_reason = "cancelled"
        responses = [it for call_id in self.approvals for it in self._wire.approval_resolved(call_id, outcome)]
        self._clear_pending()
        return responses

    def resolve(self, outcomes: Mapping[str, Outcome]) -> Responses:
        """Resolve all waiting calls, with the outcomes of their approvals by call id."""
        responses: Responses = []
        for call_id, outcome in outcomes.items():
            responses += self._wire.approval_resolved(call_id, outcome)
            if outcome["approved"]:
                responses += self._tool_started(call_id, self.approvals[call_id].name)
        self._clear_pending()
        return [*responses, *self._set_activity(THINKING)]

    def follow(self) -> Responses:
        """Follow a run of another client, who has answered calls. The client's tools stay requested meanwhile."""
        self._decided_elsewhere |= {call_id: request.name for call_id, request in self.approvals.items()}
        self.approvals = {}
        return self._set_activity(THINKING)

    def add_result(self, call_id: str, result: str) -> Responses:
        """Add the result of a tool of the client."""
        self.tool_requests.pop(call_id, None)
        return self._tool_finished(call_id, result)

    def complete(self) -> Responses:
        """Complete the turn."""
        finished = self._wire.turn_finished(self.message_id, self.usage, self.stop_reason)
        return [*finished, *self._set_activity(IDLE)]

    # --- tools ---

    def _tool_call_ended(self, call_id: str) -> Responses:
        """Report a server tool as started, unless it needs an approval. Tools of the client are requested later."""
        call = self._calls.get(call_id)
        if call is None or call.name in self._tools or self._policy(call.name) != "allow":
            return []
        return self._tool_started(call_id, call.name)

    def _tool_started(self, call_id: str, name: str) -> Responses:
        activity = self._set_activity(CALLING, name)
        if call_id in self._started:
            return activity
        self._started[call_id] = name
        return [*activity, *self._wire.tool_started(call_id, name, self._category(name))]

    def _resolve_elsewhere(self, result: Event) -> Responses:
        """Resolve the approval of a call that another client has answered. The call's result tells the decision."""
        call_id = result["toolCallId"]
        name = self._decided_elsewhere.pop(call_id, None)
        if name is None:
            return []
        is_approved = not is_denied(result)
        resolved = self._wire.approval_resolved(call_id, APPROVED_ELSEWHERE if is_approved else DENIED_ELSEWHERE)
        return [*resolved, *(self._tool_started(call_id, name) if is_approved else ())]

    def _resolve_unknown(self) -> Responses:
        """Resolve the approvals that another client has answered if no result tells the decision."""
        answered, self._decided_elsewhere = self._decided_elsewhere.keys() - self.approvals.keys(), {}
        return [it for call_id in answered for it in self._wire.approval_resolved(call_id, UNKNOWN_ELSEWHERE)]

    def _call_finished(self, result: Event) -> Responses:
        """Report the result of a call. The server's tool was run if it has the same name as a tool of the client."""
        call_id, responses = result["toolCallId"], self._resolve_elsewhere(result)
        if call_id in self._calls and self._calls[call_id].name in self._tools:
            responses += self._tool_started(call_id, self._calls[call_id].name)
        return [*responses, *self._tool_finished(call_id, text_of(result.get("content")))]

    def _subagent_call_finished(self, result: Event) -> Responses:
        """Report the result of a subagent's call if its start was reported."""
        call_id, resolved = result["toolCallId"], self._resolve_elsewhere(result)
        if call_id not in self._started:
            return resolved
        return [*resolved, *self._tool_finished(call_id, text_of(result.get("content")))]

    def _tool_finished(self, call_id: str, result: str) -> Responses:
        name = self._started.pop(call_id, "") or self._names.get(call_id, "")
        call = self._calls.pop(call_id, None) or OpenToolCall(name)
        responses = self._wire.tool_finished(call_id, call.name, result[:MAX_SUMMARY])
        if call.name == LOAD_SKILL:
            responses += self._wire.skill_loaded(str(parameters_of(call.arguments).get("name", "")))
        is_calling = self._activity[0] == CALLING and (self._started or self.tool_requests)
        return responses if is_calling else [*responses, *self._set_activity(THINKING)]

    def _policy(self, name: str) -> str:
        return next((policy for pattern, policy, _, _ in self._permissions if fnmatchcase(name, pattern)), "allow")

    def _category(self, name: str) -> str:
        if name in self._tools:
            return self._tools[name].category
        categories = (category for pattern, _, category, _ in self._permissions if fnmatchcase(name, pattern))
        return next(categories, None) or ""

    # --- the end of a run ---

    def _finish_run(self, event: Event) -> Responses:
        outcome = (event.get("outcome") or {}).get("type")
        self.approvals = {request.call_id: request for request in approval_requests(event)}
        self._names |= {request.call_id: request.name for request in self.approvals.values()}
        pending = {} if outcome == "cancelled" else self._pending_calls()
        stop_reason = "tool_use" if self.approvals or pending else self.stop_reason
        responses = [*self._resolve_unknown(), *self._count_usage(event, stop_reason)]
        if outcome == "cancelled":
            self.stop_reason = "cancelled"
            self._clear_pending()
            return responses
        for call_id, call in pending.items():
            responses += self._request_tool(call_id, call)
        for request in self.approvals.values():
            reason = ": ".join(filter(None, (request.name, request.explanation)))
            responses += self._set_activity(WAITING, request.call_id, reason)
            responses += self._wire.approval_requested(request, request.timeout_seconds(self._now()))
        return responses

    def _pending_calls(self) -> dict[str, OpenToolCall]:
        """Return the calls without a result that the client must run."""
        return {
            call_id: call
            for call_id, call in self._calls.items()
            if call_id not in self.approvals and call.name in self._tools
        }

    def _request_tool(self, call_id: str, call: OpenToolCall) -> Responses:
        if call_id in self.tool_requests:
            return self._set_activity(CALLING, call.name)
        tool = self._tools.get(call.name)
        timeout_ms = tool.timeout_ms if tool else TIMEOUT_MS
        try:
            arguments = arguments_of(call.arguments)
        except ValueError as error:
            text = f"Error: the client cannot get the arguments of this call: {error}."
            self.tool_requests[call_id] = ClientToolCall(call_id, call.name, timeout_ms, text)
            return self._tool_started(call_id, call.name)
        self.tool_requests[call_id] = ClientToolCall(call_id, call.name, timeout_ms)
        activity = self._set_activity(CALLING, call.name)
        return [*activity, *self._wire.tool_requested(call_id, call.name, arguments, timeout_ms)]

    def _count_usage(self, event: Event, stop_reason: str) -> Responses:
        """Add the tokens of a run to the turn's."""
        responses: Responses = []
        latency_ms = int((self._now() - self._run_began_at) * 1000)
        for row in event.get("usage") or ():
            usage = usage_of(row)
            add(self.usage, usage)
            responses += self._wire.model_call(
                row.get("model") or "", row.get("provider") or "", usage, latency_ms, stop_reason
            )
        return responses

    def _custom_event(self, name: str, value: object) -> Responses:
        details = value if isinstance(value, Mapping) else {}
        match name:
            case "context.compacted":
                return self._wire.compacted(details)
            case "context.snapshot":
                self.context = int(details.get("totalTokens", 0)), int(details.get("contextSize", 0))
            case "model.stopped":
                self.stop_reason = STOP_REASONS.get(str(details.get("reason")), self.stop_reason)
        return []

    def _clear_pending(self) -> None:
        self.tool_requests, self.approvals = {}, {}

    # --- approvals and questions ---

    def _set_activity(self, state: str, detail: str = "", reason: str = "") -> Responses:
        """Report the agent's activity if it has changed, and the presence if it has changed or has a reason to tell.

        ``reason`` is for people. Release 0.2 reads it in the presence, because ``detail`` is for programs.
        """
        if self._activity == (state, detail):
            return []
        self._activity = state, detail
        responses = self._wire.activity(state, detail, reason or detail)
        level = MINI if state == CALLING else FULL
        if self._presence != level or reason:
            self._presence = level
            responses += self._wire.presence(level, reason or state)
        return responses


def usage_of(row: Event) -> pb.TokenUsage:
    """Translate token counts. AG-UI's input tokens include cache reads and writes, and roz's do not."""
    cached, written = row.get("cachedInputTokens") or 0, row.get("cacheWriteInputTokens") or 0
    return pb.TokenUsage(
        input_tokens=max(0, (row.get("inputTokens") or 0) - cached - written),
        output_tokens=row.get("outputTokens") or 0,
        cache_read_tokens=cached,
        cache_creation_tokens=written,
    )


def add(total: pb.TokenUsage, usage: pb.TokenUsage) -> None:
    """Add tokens to a total."""
    total.input_tokens += usage.input_tokens
    total.output_tokens += usage.output_tokens
    total.cache_read_tokens += usage.cache_read_tokens
    total.cache_creation_tokens += usage.cache_creation_tokens


def error_of(event: Event) -> AppError:
    """Return the error of a RUN_ERROR event."""
    code = next((known_code for known_code in ErrorCode if known_code == event.get("code")), ErrorCode.AGENT_ERROR)
    return AppError(code, str(event.get("message", "")))
