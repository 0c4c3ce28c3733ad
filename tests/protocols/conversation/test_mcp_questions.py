"""Questions of MCP servers for clients that can only approve and deny, maybe with other arguments."""

import pytest

from agui_container.ports.tool import DECLINE
from agui_container.protocols.conversation.approvals import (
    ApprovalDecision,
    Verdict,
    approval_requests,
    decision,
    resume_entry,
)
from tests.engine.doubles import Json

QUESTION: Json = {"id": "q", "reason": "elicitation", "message": "Which size?", "toolCallId": "call-1"}
FINISHED: Json = {"outcome": {"type": "interrupt", "interrupts": [QUESTION]}}


@pytest.mark.parametrize(
    ("answer", "status", "payload"),
    [
        (decision("call-1", is_approved=True), "resolved", {}),
        (ApprovalDecision("call-1", Verdict.APPROVED, edited_arguments={"size": 3}), "resolved", {"size": 3}),
        (decision("call-1", is_approved=False, reason="too dear"), "resolved", DECLINE),
        (ApprovalDecision("call-1", Verdict.CANCELLED), "cancelled", None),
    ],
)
def test_an_approval_accepts_the_question_of_an_mcp_server_and_a_denial_declines_it(
    answer: ApprovalDecision, status: str, payload: object
) -> None:
    (request,) = approval_requests(FINISHED)
    assert request.label == "Which size?"
    entry = resume_entry(request, answer)
    assert (entry.interrupt_id, entry.status, entry.payload) == ("q", status, payload)
