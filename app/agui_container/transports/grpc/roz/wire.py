"""Responses to a roz client, for both generations of clients.

Releases 0.2 read the fields 1 to 11 of a response. Releases since 1.0 read ``session_event`` (field 19). Each
generation ignores the fields of the other. ``RozEncoder`` has one method for each event, which returns the responses
for the chosen generation, or for both.

Rule: pure translation; the clock and the source of ids are parameters.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from pydantic_core import from_json

from agui_container.protocol.errors import AppError
from agui_container.transports.grpc.gen.roz.v1 import agent_pb2 as pb
from agui_container.transports.grpc.interrupts import ApprovalRequest
from agui_container.transports.grpc.options import RozWire
from agui_container.transports.grpc.roz.outcomes import Outcome

Responses = list[pb.SessionResponse]

Permissions = Sequence[tuple[str, str, str | None, str | None]]

POLICIES = {"ask": "require_confirmation", "deny": "block"}
"""Roz's words for policies of tools that have another word here."""

SUMMARY = "summary"
"""Roz's level of a compaction that removes whole turns. The other levels remove only results or reasoning."""

ACTIVITIES_1_0 = {"thinking": "planning", "waiting_approval": "awaiting_approval"}
"""Words of release 1.0 for activities that have another word in release 0.2."""

MAX_HINT = 512
"""Number of characters of the reason of an activity and of a presence, as with roz's own server."""


def struct_of(value: Mapping[str, Any]) -> Struct:
    """Return a JSON object as protobuf's ``Struct``."""
    struct = Struct()
    struct.update(dict(value))
    return struct


def arguments_of(text: str) -> Struct:
    """Return the arguments of a call, JSON text, for the client that is to run it.

    Raises:
        ValueError: the text is no JSON object, or no client can read it as a ``Struct``. The message tells the reason.
    """
    try:
        arguments: object = from_json(text or "{}")
        if not isinstance(arguments, dict):
            raise ValueError("they must be a JSON object")  # noqa: TRY004 - the text has a wrong value
        json.dumps(arguments, allow_nan=False)
        struct = struct_of(arguments)
        payload = pb.ToolCallRequestedPayload(parameters=struct)
        envelope = pb.SessionEventEnvelope(tool_call_requested=payload)
        pb.SessionResponse.FromString(pb.SessionResponse(session_event=envelope).SerializeToString())
    except DecodeError:
        raise ValueError("they are nested too deeply") from None
    except OverflowError:
        raise ValueError("a number is too large") from None
    return struct


class RozEncoder:
    """Responses of one session.

    Args:
        generation: generation of the client, if it is known.
        new_id: makes the ids of events.
        now: clock that returns Unix seconds.

    Attributes:
        correlation_id: id of the message that the turn answers, for events of release 1.0.
    """

    def __init__(self, generation: RozWire, new_id: Callable[[], str], now: Callable[[], float]) -> None:
        self._writes_v0_2 = generation is not RozWire.V1_0
        self._writes_v1_0 = generation is not RozWire.V0_2
        self._new_id = new_id
        self._now = now
        self.correlation_id = ""

    def _responses(self, old: pb.SessionResponse | None, event_type: str, **payload: object) -> Responses:
        responses = [old] if old is not None and self._writes_v0_2 else []
        if self._writes_v1_0:
            seconds = self._now()
            whole = int(seconds)
            envelope = pb.SessionEventEnvelope(
                event_id=self._new_id(),
                correlation_id=self.correlation_id,
                timestamp=Timestamp(seconds=whole, nanos=int((seconds - whole) * 1e9)),
                event_type=event_type,
                **payload,  # type: ignore[arg-type] # the one field of the oneof
            )
            responses.append(pb.SessionResponse(session_event=envelope))
        return responses

    # --- sessions ---

    def session_started(self, session_id: str, model: str, permissions: Permissions) -> Responses:
        """Report the start of the session."""
        rules = [
            {"tool_pattern": pattern, "policy": POLICIES.get(policy, policy), "category": category, "reason": reason}
            for pattern, policy, category, reason in permissions
        ]
        old = [pb.PermissionRule(**rule) for rule in rules]
        new = [pb.SessionPermissionRulePayload(**rule) for rule in rules]
        started = pb.SessionStarted(session_id=session_id, model=model, permissions=old)
        payload = pb.SessionStartedPayload(session_id=session_id, mode="react", model_name=model, permissions=new)
        return self._responses(pb.SessionResponse(session_started=started), "session_started", session_started=payload)

    def resume_summary(self, messages: int) -> Responses:
        """Report that the session continues an earlier conversation."""
        summary = pb.ResumeSummaryPayload(summary=struct_of({"messages": messages}))
        return self._responses(None, "resume_summary", resume_summary=summary)

    def session_rejected(self, error: AppError) -> Responses:
        """Report a failed request or turn. The session continues."""
        facts = {"code": error.code.value, "message": error.message, "retryable": error.spec.is_retryable}
        old = pb.SessionResponse(error=pb.SessionError(**facts))  # type: ignore[arg-type] # typed above
        rejected = pb.SessionRejectedPayload(**facts)  # type: ignore[arg-type] # as above
        return self._responses(old, "session_rejected", session_rejected=rejected)

    def message_refused(self, message_id: str, error: AppError) -> Responses:
        """Report a message that gets no turn, also during the turn of another message."""
        answered, self.correlation_id = self.correlation_id, message_id
        responses = self.session_rejected(error)
        self.correlation_id = answered
        return responses

    def refused_turn_finished(self, message_id: str) -> Responses:
        """Complete the turn of a refused message, between two turns."""
        self.correlation_id = message_id
        return self.turn_finished(message_id, pb.TokenUsage(), "error")

    def session_failed(self, error: AppError) -> Responses:
        """Report the end of the session because of the server."""
        old = pb.SessionResponse(
            error=pb.SessionError(code=error.code.value, message=error.message, retryable=error.spec.is_retryable)
        )
        failed = pb.SessionFailedPayload(failure=error.code.value)
        return self._responses(old, "session_failed", session_failed=failed)

    def session_completed(self, summary: str, usage: pb.TokenUsage) -> Responses:
        """Report the end of the session because of the client. Release 0.2 has no such response."""
        completed = pb.SessionCompletedPayload(
            summary=summary, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens
        )
        return self._responses(None, "session_completed", session_completed=completed)

    # --- turns ---

    def turn_started(self, index: int) -> Responses:
        """Report the start of a turn. Release 0.2 has no such response."""
        return self._responses(None, "turn_started", turn_started=pb.TurnStartedPayload(turn_index=index))

    def text(self, message_id: str, content: str) -> Responses:
        """Return a text delta of the answer."""
        old = pb.SessionResponse(text_delta=pb.TextDelta(message_id=message_id, content=content))
        return self._responses(
            old, "text_delta", text_delta=pb.TextDeltaPayload(content=content, message_id=message_id)
        )

    def thinking(self, message_id: str, content: str) -> Responses:
        """Return a text delta of the model's reasoning."""
        old = pb.SessionResponse(thinking_delta=pb.ThinkingDelta(message_id=message_id, content=content))
        payload = pb.ThinkingDeltaPayload(content=content, message_id=message_id)
        return self._responses(old, "thinking_delta", thinking_delta=payload)

    def turn_finished(self, message_id: str, usage: pb.TokenUsage, stop_reason: str) -> Responses:
        """Report the end of a turn."""
        complete = pb.TurnComplete(message_id=message_id, usage=usage, stop_reason=stop_reason)
        payload = pb.TurnFinishedPayload(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_creation_tokens=usage.cache_creation_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            stop_reason=stop_reason,
            message_id=message_id,
        )
        return self._responses(pb.SessionResponse(turn_complete=complete), "turn_finished", turn_finished=payload)

    def model_call(
        self, model: str, provider: str, usage: pb.TokenUsage, latency_ms: int, stop_reason: str
    ) -> Responses:
        """Report the model calls of one run. Release 0.2 has no such response."""
        completed = pb.ModelCallCompletedPayload(
            model_id=model,
            provider=provider,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            latency_ms=latency_ms,
            cache_hit_tokens=usage.cache_read_tokens,
            stop_reason=stop_reason,
        )
        return self._responses(None, "model_call_completed", model_call_completed=completed)

    def compacted(self, value: Mapping[str, object]) -> Responses:
        """Report that the model's context was compacted. ``value`` is that of the event ``context.compacted``."""
        numbers = {name: count for name, count in value.items() if isinstance(count, int)}
        before, after = numbers.get("messagesBefore", 0), numbers.get("messagesAfter", 0)
        tokens_before, tokens_after = numbers.get("tokensBefore", 0), numbers.get("tokensAfter", 0)
        summary = value.get("summary")
        old = pb.ContextCompacted(
            level=SUMMARY,
            messages_before=before,
            messages_after=after,
            tokens_before=tokens_before,
            tokens_after=tokens_after,
            summary=summary if isinstance(summary, str) else None,
        )
        new = pb.ContextCompactedPayload(
            level=SUMMARY,
            messages_affected=max(0, before - after),
            tokens_before=tokens_before,
            tokens_after=tokens_after,
        )
        return self._responses(pb.SessionResponse(context_compacted=old), "context_compacted", context_compacted=new)

    # --- tools ---

    def tool_requested(self, call_id: str, name: str, arguments: Struct, timeout_ms: int) -> Responses:
        """Request that the client runs one of its tools."""
        old = pb.ToolRequest(tool_call_id=call_id, tool_name=name, parameters=arguments, timeout_ms=timeout_ms)
        new = pb.ToolCallRequestedPayload(call_id=call_id, tool_name=name, parameters=arguments, timeout_ms=timeout_ms)
        return self._responses(pb.SessionResponse(tool_request=old), "tool_call_requested", tool_call_requested=new)

    def tool_started(self, call_id: str, name: str, category: str) -> Responses:
        """Report the start of a server tool. Release 0.2 has no such response."""
        started = pb.ToolCallStartedPayload(call_id=call_id, tool_name=name, category=category)
        return self._responses(None, "tool_call_started", tool_call_started=started)

    def tool_finished(self, call_id: str, name: str, summary: str) -> Responses:
        """Report the result of a call. Release 0.2 has no such response."""
        finished = pb.ToolCallFinishedPayload(call_id=call_id, tool_name=name, result_summary=summary)
        return self._responses(None, "tool_call_finished", tool_call_finished=finished)

    def skill_loaded(self, name: str) -> Responses:
        """Report that the model has read a skill. Release 0.2 has no such response."""
        return self._responses(None, "skill_loaded", skill_loaded=pb.SkillLoadedPayload(name=name))

    def approval_requested(self, request: ApprovalRequest, seconds: int) -> Responses:
        """Request a decision on a call. Release 0.2 gets only the activity ``waiting_approval``."""
        requested = pb.ApprovalRequestedPayload(
            approval_id=request.call_id, action=request.name, reason=request.explanation, timeout_secs=seconds
        )
        return self._responses(None, "approval_requested", approval_requested=requested)

    def approval_resolved(self, call_id: str, outcome: Outcome) -> Responses:
        """Report a decision. Release 0.2 has no such response."""
        resolved = pb.ApprovalResolvedPayload(approval_id=call_id, outcome=struct_of(outcome))
        return self._responses(None, "approval_resolved", approval_resolved=resolved)

    # --- approvals and questions ---

    def activity(self, state: str, detail: str, reason: str) -> Responses:
        """Report a change of the agent's activity. Release 0.2 reads ``detail``, and release 1.0 ``reason``."""
        old = pb.SessionResponse(activity_update=pb.ActivityUpdate(state=state, detail=detail))
        changed = pb.ActivityChangedPayload(
            state=ACTIVITIES_1_0.get(state, state), reason=reason[:MAX_HINT], robot_safe=True
        )
        return self._responses(old, "activity_changed", activity_changed=changed)

    def presence(self, level: str, reason: str) -> Responses:
        """Suggest how a user interface shows itself: ``full`` or ``mini``."""
        reason = reason[:MAX_HINT]
        old = pb.SessionResponse(presence_hint=pb.PresenceHint(level=level, reason=reason))
        return self._responses(
            old, "presence_hinted", presence_hinted=pb.PresenceHintedPayload(level=level, reason=reason)
        )
