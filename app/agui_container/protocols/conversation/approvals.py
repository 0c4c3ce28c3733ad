"""Interrupts of a run as approvals of tool calls, and the decisions on them, the same for every protocol.

Rule: pure functions. A client answers by the id of the tool call, or by the interrupt's own id if there is no call.
"""

import math
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from ag_ui.core import ResumeEntry
from msgspec import Struct

from agui_container.ports.tool import DECLINE, ELICITATION, MAX_REASON
from agui_container.protocols.conversation.events import Event

NO_ARGUMENTS = "{}"

MAX_SHOWN_ARGUMENTS = 10_000
"""Number of characters of a call's arguments in a text for people. A cut is shown."""


class ApprovalRequest(Struct, frozen=True):
    """A call, or a question of an agent, that waits for a decision.

    Attributes:
        call_id: id of the call for the client; the interrupt's id if there is no call.
        interrupt_id: id of the interrupt for the engine.
        arguments: the call's arguments as JSON text; ``{}`` if there are none.
        reason: the policy's reason, or the text of an agent's own question.
        preview: the tool's preview of the call, or the text of an agent's own question; empty if there is neither.
        expires_at: ISO 8601 time of the approval's end, or an empty text.
        label: name of the tool, or the text of an agent's own question.
        has_call: True if a tool call waits. A question of an agent has no call that could start and end.
        asks_values: True for a question of an MCP server. Edited arguments are the values that it asks for.
    """

    call_id: str
    interrupt_id: str
    name: str
    arguments: str
    reason: str
    preview: str
    expires_at: str
    has_call: bool
    label: str
    asks_values: bool = False

    @property
    def explanation(self) -> str:
        """The reason and the arguments in one text, for wires that have no field for arguments."""
        cut = len(self.arguments) - MAX_SHOWN_ARGUMENTS
        shown = f"{self.arguments[:MAX_SHOWN_ARGUMENTS]}… ({cut} characters more)" if cut > 0 else self.arguments
        return "; ".join(filter(None, (self.reason, "" if shown == NO_ARGUMENTS else f"arguments: {shown}")))

    def seconds_left(self, now: float) -> float:
        """Infinity if the approval never expires. ``now`` is in Unix seconds."""
        try:
            return datetime.fromisoformat(self.expires_at).timestamp() - now
        except ValueError:  # there is none, or an agent of the operator's own has written something else
            return math.inf

    def timeout_seconds(self, now: float) -> int:
        """Return the whole seconds for a client, 0 if the approval never expires."""
        seconds = self.seconds_left(now)
        return max(0, int(seconds)) if math.isfinite(seconds) else 0


class Verdict(StrEnum):
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    ELSEWHERE = "elsewhere"
    """Another client has answered. The results of the next run tell the decision."""


class ApprovalDecision(Struct, frozen=True):
    """The answer to an approval request. ``edited_arguments`` replace those of an approved call in full."""

    call_id: str
    verdict: Verdict
    reason: str = ""
    edited_arguments: Mapping[str, object] | None = None


def decision(call_id: str, *, is_approved: bool, reason: str = "") -> ApprovalDecision:
    return ApprovalDecision(call_id, Verdict.APPROVED if is_approved else Verdict.DENIED, reason)


def resume_entry(request: ApprovalRequest, answer: ApprovalDecision) -> ResumeEntry:
    """A long reason is cut, because the engine refuses it and the model needs no more."""
    if answer.verdict not in {Verdict.APPROVED, Verdict.DENIED}:
        return ResumeEntry(interrupt_id=request.interrupt_id, status="cancelled")
    is_approved = answer.verdict is Verdict.APPROVED
    if request.asks_values:
        values = {**(answer.edited_arguments or {})} if is_approved else DECLINE
        return ResumeEntry(interrupt_id=request.interrupt_id, status="resolved", payload=values)
    payload: dict[str, object] = {"approved": is_approved}
    if answer.reason and not is_approved:
        payload["reason"] = answer.reason[:MAX_REASON]
    if answer.edited_arguments is not None and is_approved:
        payload["editedArgs"] = answer.edited_arguments
    return ResumeEntry(interrupt_id=request.interrupt_id, status="resolved", payload=payload)


def approval_requests(finished: Event) -> list[ApprovalRequest]:
    outcome = finished.get("outcome") or {}
    if outcome.get("type") != "interrupt":
        return []
    return [approval_request(interrupt) for interrupt in outcome.get("interrupts", ())]


def approval_request(interrupt: Event) -> ApprovalRequest:
    metadata = interrupt.get("metadata") or {}
    question = "" if "arguments" in metadata else interrupt.get("message")
    return ApprovalRequest(
        call_id=interrupt.get("toolCallId") or interrupt["id"],
        interrupt_id=interrupt["id"],
        name=metadata.get("toolName") or interrupt.get("reason") or "",
        arguments=metadata.get("arguments") or NO_ARGUMENTS,
        reason=metadata.get("reason") or question or "",
        preview=metadata.get("preview") or question or "",
        expires_at=interrupt.get("expiresAt") or "",
        has_call=bool(interrupt.get("toolCallId")),
        label=metadata.get("toolName") or interrupt.get("message") or interrupt.get("reason") or "",
        asks_values=interrupt.get("reason") == ELICITATION,
    )
