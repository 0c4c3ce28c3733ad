"""Interrupts of a run as approvals of tool calls, the same for every gRPC protocol.

Rule: pure data. The id that a client answers by is the tool call's, or the interrupt's own where it asks for no call.
"""

from collections.abc import Mapping
from typing import Any

from ag_ui.core import ResumeEntry
from msgspec import Struct

Event = Mapping[str, Any]
"""An AG-UI event as decoded JSON."""


class ApprovalRequest(Struct, frozen=True):
    """One call that waits for a decision.

    Attributes:
        call_id: the id that a client decides by.
        interrupt_id: the id that the engine is answered by.
        arguments: the call's arguments as JSON text; ``{}`` where there are none.
        reason: the policy's reason, or the interrupt's message.
        preview: the tool's preview of the call, or an empty text.
        expires_at: ISO 8601 time of the approval's end, or an empty text.
    """

    call_id: str
    interrupt_id: str
    name: str
    arguments: str
    reason: str
    preview: str
    expires_at: str


def approval_requests(finished: Event) -> list[ApprovalRequest]:
    """The approvals that a RUN_FINISHED event asks for; none where it has another outcome."""
    outcome = finished.get("outcome") or {}
    if outcome.get("type") != "interrupt":
        return []
    return [_request(interrupt) for interrupt in outcome.get("interrupts", ())]


def _request(interrupt: Event) -> ApprovalRequest:
    about = interrupt.get("metadata") or {}
    return ApprovalRequest(
        call_id=interrupt.get("toolCallId") or interrupt["id"],
        interrupt_id=interrupt["id"],
        name=about.get("toolName") or interrupt.get("reason") or "",
        arguments=about.get("arguments") or "{}",
        reason=about.get("reason") or interrupt.get("message") or "",
        preview=about.get("preview") or "",
        expires_at=interrupt.get("expiresAt") or "",
    )


def decision(request: ApprovalRequest, *, approved: bool, reason: str = "") -> ResumeEntry:
    """The answer to an approval request."""
    payload: dict[str, object] = {"approved": approved}
    if reason and not approved:
        payload["reason"] = reason
    return ResumeEntry(interrupt_id=request.interrupt_id, status="resolved", payload=payload)


def abandonment(request: ApprovalRequest) -> ResumeEntry:
    """The answer of a client that wants no decision any more."""
    return ResumeEntry(interrupt_id=request.interrupt_id, status="cancelled")


def text_of(content: object) -> str:
    """The text of a tool result's content, which is text or content parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part.get("text") or f"[{part.get('type')}]" for part in parts if isinstance(part, Mapping))


def is_failure(result: Event) -> bool:
    """Whether a TOOL_CALL_RESULT event is the result of a call that failed."""
    return (result.get("metadata") or {}).get("failed") is True
