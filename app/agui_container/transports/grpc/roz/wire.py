"""What a roz client is told, in the forms of both generations of clients.

Releases 0.2 read the fields 1 to 11 of a response, releases since 1.0 read ``session_event`` (field 19), and each skips
what it does not know. So each fact is a method here, and gives the responses of the chosen generation, or of both.
Rule: pure translation; times and ids come from outside.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from agui_container.protocol.errors import AppError
from agui_container.transports.grpc.gen.roz.v1 import agent_pb2 as pb
from agui_container.transports.grpc.interrupts import ApprovalRequest
from agui_container.transports.grpc.options import RozWire

Responses = list[pb.SessionResponse]
Permissions = Sequence[tuple[str, str, str | None, str | None]]


def struct_of(value: Mapping[str, Any]) -> Struct:
    """JSON as protobuf's ``Struct``."""
    struct = Struct()
    struct.update(dict(value))
    return struct


class Wire:
    """The responses of one session.

    Args:
        generation: of the client, where it is known.
        new_id: makes the ids of events.
        now: Unix seconds.

    Attributes:
        correlation_id: the message that is being answered; events of release 1.0 name it.
    """

    def __init__(self, generation: RozWire, new_id: Callable[[], str], now: Callable[[], float]) -> None:
        self._old = generation is not RozWire.V1_0
        self._new = generation is not RozWire.V0_2
        self._new_id = new_id
        self._now = now
        self.correlation_id = ""

    def _both(self, old: pb.SessionResponse | None, event_type: str, **payload: object) -> Responses:
        responses = [old] if old is not None and self._old else []
        if self._new:
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

    # --- the session ---

    def session_started(self, session_id: str, model: str, permissions: Permissions) -> Responses:
        """The session is open."""
        old = [
            pb.PermissionRule(tool_pattern=pattern, policy=policy, category=category, reason=reason)
            for pattern, policy, category, reason in permissions
        ]
        new = [
            pb.SessionPermissionRulePayload(tool_pattern=pattern, policy=policy, category=category, reason=reason)
            for pattern, policy, category, reason in permissions
        ]
        started = pb.SessionStarted(session_id=session_id, model=model, permissions=old)
        payload = pb.SessionStartedPayload(session_id=session_id, mode="react", model_name=model, permissions=new)
        return self._both(pb.SessionResponse(session_started=started), "session_started", session_started=payload)

    def resume_summary(self, messages: int) -> Responses:
        """A conversation from before goes on."""
        summary = pb.ResumeSummaryPayload(summary=struct_of({"messages": messages}))
        return self._both(None, "resume_summary", resume_summary=summary)

    def refused(self, error: AppError) -> Responses:
        """A request or a turn has failed; the session goes on."""
        facts = {"code": error.code.value, "message": error.message, "retryable": error.spec.retryable}
        old = pb.SessionResponse(error=pb.SessionError(**facts))  # type: ignore[arg-type] # typed above
        rejected = pb.SessionRejectedPayload(**facts)  # type: ignore[arg-type] # as above
        return self._both(old, "session_rejected", session_rejected=rejected)

    def session_failed(self, error: AppError) -> Responses:
        """The session ends, because of the server."""
        old = pb.SessionResponse(
            error=pb.SessionError(code=error.code.value, message=error.message, retryable=error.spec.retryable)
        )
        failed = pb.SessionFailedPayload(failure=error.code.value)
        return self._both(old, "session_failed", session_failed=failed)

    def session_completed(self, summary: str, usage: pb.TokenUsage) -> Responses:
        """The session ends, because the client says so. Release 0.2 has no word for it."""
        completed = pb.SessionCompletedPayload(
            summary=summary, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens
        )
        return self._both(None, "session_completed", session_completed=completed)

    # --- a turn ---

    def turn_started(self, index: int) -> Responses:
        """A message is being answered. Release 0.2 has no word for it."""
        return self._both(None, "turn_started", turn_started=pb.TurnStartedPayload(turn_index=index))

    def text(self, message_id: str, content: str) -> Responses:
        """A piece of the answer."""
        old = pb.SessionResponse(text_delta=pb.TextDelta(message_id=message_id, content=content))
        return self._both(old, "text_delta", text_delta=pb.TextDeltaPayload(content=content, message_id=message_id))

    def thinking(self, message_id: str, content: str) -> Responses:
        """A piece of the model's reasoning."""
        old = pb.SessionResponse(thinking_delta=pb.ThinkingDelta(message_id=message_id, content=content))
        payload = pb.ThinkingDeltaPayload(content=content, message_id=message_id)
        return self._both(old, "thinking_delta", thinking_delta=payload)

    def turn_finished(self, message_id: str, usage: pb.TokenUsage, stop_reason: str) -> Responses:
        """The answer is complete."""
        complete = pb.TurnComplete(message_id=message_id, usage=usage, stop_reason=stop_reason)
        payload = pb.TurnFinishedPayload(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_creation_tokens=usage.cache_creation_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            stop_reason=stop_reason,
            message_id=message_id,
        )
        return self._both(pb.SessionResponse(turn_complete=complete), "turn_finished", turn_finished=payload)

    def model_call(
        self, model: str, provider: str, usage: pb.TokenUsage, latency_ms: int, stop_reason: str
    ) -> Responses:
        """Model calls of one run have ended. Release 0.2 has no word for it."""
        completed = pb.ModelCallCompletedPayload(
            model_id=model,
            provider=provider,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            latency_ms=latency_ms,
            cache_hit_tokens=usage.cache_read_tokens,
            stop_reason=stop_reason,
        )
        return self._both(None, "model_call_completed", model_call_completed=completed)

    def compacted(self, value: Mapping[str, object]) -> Responses:
        """Old messages were left out of the model's context. ``value`` is that of ``context.compacted``."""
        numbers = {name: count for name, count in value.items() if isinstance(count, int)}
        before, after = numbers.get("messagesBefore", 0), numbers.get("messagesAfter", 0)
        tokens_before, tokens_after = numbers.get("tokensBefore", 0), numbers.get("tokensAfter", 0)
        level = str(value.get("strategy", ""))
        old = pb.ContextCompacted(
            level=level,
            messages_before=before,
            messages_after=after,
            tokens_before=tokens_before,
            tokens_after=tokens_after,
        )
        new = pb.ContextCompactedPayload(
            level=level,
            messages_affected=max(0, before - after),
            tokens_before=tokens_before,
            tokens_after=tokens_after,
        )
        return self._both(pb.SessionResponse(context_compacted=old), "context_compacted", context_compacted=new)

    # --- tools ---

    def tool_requested(self, call_id: str, name: str, parameters: Mapping[str, object], timeout_ms: int) -> Responses:
        """The client is to run one of its tools."""
        old = pb.ToolRequest(
            tool_call_id=call_id, tool_name=name, parameters=struct_of(parameters), timeout_ms=timeout_ms
        )
        new = pb.ToolCallRequestedPayload(
            call_id=call_id, tool_name=name, parameters=struct_of(parameters), timeout_ms=timeout_ms
        )
        return self._both(pb.SessionResponse(tool_request=old), "tool_call_requested", tool_call_requested=new)

    def tool_started(self, call_id: str, name: str, category: str) -> Responses:
        """A tool of the server runs. Release 0.2 has no word for it."""
        started = pb.ToolCallStartedPayload(call_id=call_id, tool_name=name, category=category)
        return self._both(None, "tool_call_started", tool_call_started=started)

    def tool_finished(self, call_id: str, name: str, summary: str) -> Responses:
        """A call has its result. Release 0.2 has no word for it."""
        finished = pb.ToolCallFinishedPayload(call_id=call_id, tool_name=name, result_summary=summary)
        return self._both(None, "tool_call_finished", tool_call_finished=finished)

    def skill_loaded(self, name: str) -> Responses:
        """The model has read a skill. Release 0.2 has no word for it."""
        return self._both(None, "skill_loaded", skill_loaded=pb.SkillLoadedPayload(name=name))

    def approval_requested(self, request: ApprovalRequest, seconds: int) -> Responses:
        """A call waits for a decision. Release 0.2 learns it from its activity."""
        requested = pb.ApprovalRequestedPayload(
            approval_id=request.call_id, action=request.name, reason=request.reason, timeout_secs=seconds
        )
        return self._both(None, "approval_requested", approval_requested=requested)

    def approval_resolved(self, call_id: str, outcome: Mapping[str, object]) -> Responses:
        """A decision was taken. Release 0.2 has no word for it."""
        resolved = pb.ApprovalResolvedPayload(approval_id=call_id, outcome=struct_of(outcome))
        return self._both(None, "approval_resolved", approval_resolved=resolved)

    # --- for people ---

    def activity(self, state: str, detail: str) -> Responses:
        """The agent does something else now."""
        old = pb.SessionResponse(activity_update=pb.ActivityUpdate(state=state, detail=detail))
        changed = pb.ActivityChangedPayload(state=state, reason=detail, robot_safe=True)
        return self._both(old, "activity_changed", activity_changed=changed)

    def presence(self, level: str, reason: str) -> Responses:
        """How much of itself a user interface should show: ``full``, ``mini`` or ``hidden``."""
        old = pb.SessionResponse(presence_hint=pb.PresenceHint(level=level, reason=reason))
        return self._both(old, "presence_hinted", presence_hinted=pb.PresenceHintedPayload(level=level, reason=reason))
