"""Messages to a roz client, such as text, requests of its tools and approvals, for both generations of clients.

Releases 0.2 read the fields 1 to 11 of a response. Releases since 1.0 read ``session_event`` (field 19). Each
generation ignores the fields of the other, so every session gets both forms. The methods of ``RozEncoder`` are the
events that have two.

Rule: pure translation; the clock and the source of ids are parameters.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf.message import DecodeError, Message
from pydantic_core import from_json, to_json

from agui_container.protocol.errors import AppError
from agui_container.protocol.strict_json import parse_object
from agui_container.protocols.gen import agent_pb2 as pb
from agui_container.protocols.gen.descriptors import Struct, Timestamp
from agui_container.protocols.roz.options import PermissionRule

Responses = list[pb.SessionResponse]

Usage = Counter[str]
"""Tokens, by the names that ``TokenUsage`` and ``TurnFinishedPayload`` have for them."""

EVENT_TYPES = {
    field.message_type.name: field.name
    for field in pb.SessionEventEnvelope.DESCRIPTOR.oneofs[0].fields
    if field.message_type is not None
}
"""Types of the events of release 1.0, which are fields of the envelope, by the names of their messages."""

POLICIES = {"ask": "require_confirmation", "deny": "block"}
"""Roz's words for policies of tools that have another word here."""

SUMMARY = "summary"
"""Roz's level of a compaction that removes whole turns. The other levels remove only results or reasoning."""

ACTIVITIES_1_0 = {"thinking": "planning", "waiting_approval": "awaiting_approval"}
"""Words of release 1.0 for activities that have another word in release 0.2."""

MAX_HINT = 512
"""Number of characters of the reason of an activity and of a presence, as with roz's own server."""

ApprovalOutcome = Mapping[str, Any]
"""Outcome of an approval for release 1.0: ``type``, ``reason`` and ``modifications``. For programs, ``approved``,
``cancelled``, ``expired`` and ``elsewhere`` tell the same without words."""

APPROVED: ApprovalOutcome = {"type": "approved", "approved": True}
DENIED: ApprovalOutcome = {"type": "denied", "approved": False, "reason": "The user has denied the call."}
CANCELLED: ApprovalOutcome = {**DENIED, "cancelled": True, "reason": "The turn was cancelled."}
EXPIRED: ApprovalOutcome = {**DENIED, "expired": True, "reason": "Nobody has decided in time."}

APPROVED_ELSEWHERE: ApprovalOutcome = {**APPROVED, "elsewhere": True}
DENIED_ELSEWHERE: ApprovalOutcome = {**DENIED, "elsewhere": True, "reason": "Another client has denied the call."}
UNKNOWN_ELSEWHERE: ApprovalOutcome = {"elsewhere": True, "reason": "Another client has answered."}
"""Outcome of an approval that another client has answered, if no result tells its decision."""


def approved_outcome(arguments: str, edited: Mapping[str, object] | None) -> ApprovalOutcome:
    """Return the outcome of an approval. ``edited`` replaces the arguments of the call."""
    changes = [] if edited is None else modifications_of(parse_object(arguments) or {}, edited)
    return {**APPROVED, "type": "modified", "modifications": changes} if changes else APPROVED


def modifications_of(before: Mapping[str, object], after: Mapping[str, object]) -> list[dict[str, str]]:
    """Return the arguments that differ, with their values as JSON. A missing argument has an empty value."""
    fields = [name for name in {**before, **after} if before.get(name, ...) != after.get(name, ...)]
    return [{"field": name, "old_value": _json_of(before, name), "new_value": _json_of(after, name)} for name in fields]


def _json_of(arguments: Mapping[str, object], name: str) -> str:
    return to_json(arguments[name]).decode() if name in arguments else ""


def struct_of(value: Mapping[str, Any]) -> Struct:
    struct = Struct()
    struct.update(dict(value))
    return struct


def arguments_of(text: str) -> Struct:
    """Raise ``ValueError`` if the text is no JSON object, or no client can read it as a ``Struct``."""
    arguments: object = from_json(text or "{}", allow_inf_nan=False)
    if not isinstance(arguments, dict):
        raise ValueError("they must be a JSON object")  # noqa: TRY004 - the text has a wrong value
    try:
        struct = struct_of(arguments)
        envelope = pb.SessionEventEnvelope(tool_call_requested=pb.ToolCallRequestedPayload(parameters=struct))
        pb.SessionResponse.FromString(pb.SessionResponse(session_event=envelope).SerializeToString())
    except (DecodeError, OverflowError):
        raise ValueError("they are nested too deeply, or a number is too large") from None
    return struct


class RozEncoder:
    """Responses of one session. ``correlation_id`` is that of the message that the turn answers, for release 1.0."""

    def __init__(self, new_id: Callable[[], str], now: Callable[[], float]) -> None:
        self._new_id = new_id
        self._now = now
        self.correlation_id = ""

    def encode(self, payload: Message, old: pb.SessionResponse | None = None) -> Responses:
        """Return an event of release 1.0, after its form for release 0.2 if it has one there."""
        name, seconds = EVENT_TYPES[payload.DESCRIPTOR.name], self._now()
        whole = int(seconds)
        envelope = pb.SessionEventEnvelope(
            event_id=self._new_id(),
            correlation_id=self.correlation_id,
            timestamp=Timestamp(seconds=whole, nanos=int((seconds - whole) * 1e9)),
            event_type=name,
            **{name: payload},  # type: ignore[arg-type] # the one field of the oneof
        )
        new = pb.SessionResponse(session_event=envelope)
        return [new] if old is None else [old, new]

    # --- sessions ---

    def session_started(self, session_id: str, model: str, permissions: Sequence[PermissionRule]) -> Responses:
        rules = [
            {
                "tool_pattern": rule.tool_pattern,
                "policy": POLICIES.get(rule.policy, rule.policy),
                "category": rule.category,
                "reason": rule.reason,
            }
            for rule in permissions
        ]
        old = [pb.PermissionRule(**rule) for rule in rules]
        new = [pb.SessionPermissionRulePayload(**rule) for rule in rules]
        started = pb.SessionStarted(session_id=session_id, model=model, permissions=old)
        payload = pb.SessionStartedPayload(session_id=session_id, mode="react", model_name=model, permissions=new)
        return self.encode(payload, pb.SessionResponse(session_started=started))

    def session_rejected(self, error: AppError) -> Responses:
        """Report a failed request or turn. The session continues."""
        code, is_retryable = error.code.value, error.code.is_retryable
        rejected = pb.SessionRejectedPayload(code=code, message=error.message, retryable=is_retryable)
        return self.encode(rejected, error_response(error))

    def session_failed(self, error: AppError) -> Responses:
        """Report the end of the session because of the server."""
        return self.encode(pb.SessionFailedPayload(failure=error.code.value), error_response(error))

    def message_refused(self, message_id: str, error: AppError) -> Responses:
        """Report a message that gets no turn, also during the turn of another message."""
        answered, self.correlation_id = self.correlation_id, message_id
        responses = self.session_rejected(error)
        self.correlation_id = answered
        return responses

    def refused_turn_finished(self, message_id: str) -> Responses:
        """Complete the turn of a refused message, between two turns."""
        self.correlation_id = message_id
        return self.turn_finished(message_id, Usage(), "error")

    # --- turns ---

    def text(self, message_id: str, content: str) -> Responses:
        old = pb.SessionResponse(text_delta=pb.TextDelta(message_id=message_id, content=content))
        return self.encode(pb.TextDeltaPayload(content=content, message_id=message_id), old)

    def thinking(self, message_id: str, content: str) -> Responses:
        old = pb.SessionResponse(thinking_delta=pb.ThinkingDelta(message_id=message_id, content=content))
        return self.encode(pb.ThinkingDeltaPayload(content=content, message_id=message_id), old)

    def turn_finished(self, message_id: str, usage: Usage, stop_reason: str) -> Responses:
        complete = pb.TurnComplete(message_id=message_id, usage=pb.TokenUsage(**usage), stop_reason=stop_reason)
        payload = pb.TurnFinishedPayload(**usage, stop_reason=stop_reason, message_id=message_id)
        return self.encode(payload, pb.SessionResponse(turn_complete=complete))

    def compacted(self, value: Mapping[str, object]) -> Responses:
        """Report that the model's context was compacted. ``value`` is that of the event ``context.compacted``."""
        numbers = {name: count for name, count in value.items() if isinstance(count, int)}
        before, after = numbers.get("messagesBefore", 0), numbers.get("messagesAfter", 0)
        tokens = {"tokens_before": numbers.get("tokensBefore", 0), "tokens_after": numbers.get("tokensAfter", 0)}
        summary = value.get("summary")
        old = pb.ContextCompacted(
            level=SUMMARY,
            messages_before=before,
            messages_after=after,
            summary=summary if isinstance(summary, str) else None,
            **tokens,
        )
        new = pb.ContextCompactedPayload(level=SUMMARY, messages_affected=max(0, before - after), **tokens)
        return self.encode(new, pb.SessionResponse(context_compacted=old))

    def tool_requested(self, call_id: str, name: str, arguments: Struct, timeout_ms: int) -> Responses:
        old = pb.ToolRequest(tool_call_id=call_id, tool_name=name, parameters=arguments, timeout_ms=timeout_ms)
        new = pb.ToolCallRequestedPayload(call_id=call_id, tool_name=name, parameters=arguments, timeout_ms=timeout_ms)
        return self.encode(new, pb.SessionResponse(tool_request=old))

    def activity(self, state: str, detail: str, reason: str) -> Responses:
        """Report a change of the agent's activity. Release 0.2 reads ``detail``, and release 1.0 ``reason``."""
        old = pb.SessionResponse(activity_update=pb.ActivityUpdate(state=state, detail=detail))
        word = ACTIVITIES_1_0.get(state, state)
        return self.encode(pb.ActivityChangedPayload(state=word, reason=reason[:MAX_HINT], robot_safe=True), old)

    def presence(self, level: str, reason: str) -> Responses:
        """Suggest how a user interface shows itself: ``full`` or ``mini``."""
        reason = reason[:MAX_HINT]
        old = pb.SessionResponse(presence_hint=pb.PresenceHint(level=level, reason=reason))
        return self.encode(pb.PresenceHintedPayload(level=level, reason=reason), old)


def error_response(error: AppError) -> pb.SessionResponse:
    code, is_retryable = error.code.value, error.code.is_retryable
    return pb.SessionResponse(error=pb.SessionError(code=code, message=error.message, retryable=is_retryable))
