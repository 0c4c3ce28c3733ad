"""Decisions on approvals: the entries of ``resume``, matched to the approvals and validated.

Rule: an invalid answer is rejected before any call starts, with one sentence that names the field.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ag_ui.core import Interrupt, ResumeEntry
from msgspec import Struct, structs
from pydantic import ValidationError
from pydantic_core import to_json

from agui_container.agents.approvals.approvals import RESPONSE_SCHEMA, Approval, ApprovalAnswer
from agui_container.agents.tool_calls.tool_call import ModelToolCall, ToolResult
from agui_container.agents.tool_calls.toolbox import is_object
from agui_container.ports.tool import MAX_REASON
from agui_container.protocol.conversation.transcript import DECISION
from agui_container.protocol.errors import AppError, ErrorCode

MAX_SHOWN_FIELD = 64
"""Maximum characters of an unknown field's name in an error message."""

EXPECTED = {
    "approved": "must be true or false",
    "reason": f"must be a text of at most {MAX_REASON} characters",
    "editedArgs": "must be an object",
}


class Decision(Struct, frozen=True):
    """The decision on one approval.

    Attributes:
        approval: the approval that is answered.
        entries: the entries of ``resume`` that name its interrupts.
        answer: the answer for a call that has not started; None if it was cancelled or the call has started.
    """

    approval: Approval
    entries: Sequence[ResumeEntry]
    answer: ApprovalAnswer | None

    @property
    def call(self) -> ModelToolCall:
        """Call to run: with edited arguments if the answer has any and the call has not started."""
        if self.approval.suspension or not (self.answer and self.answer.approved) or self.answer.edited_args is None:
            return self.approval.call
        return replace(self.approval.call, arguments=to_json(self.answer.edited_args).decode())

    def recorded_in(self, result: ToolResult) -> ToolResult:
        """Return the result with this decision, so that a client can show it. A call that has started has none."""
        if self.approval.suspension is not None:
            return result
        answer = self.answer or ApprovalAnswer(approved=False)
        decision = answer.model_dump(by_alias=True, exclude_none=True)
        return structs.replace(result, metadata={**(result.metadata or {}), DECISION: decision})


def match_answers(approvals: Sequence[Approval], entries: Sequence[ResumeEntry], now: float) -> list[Decision]:
    """Return the decisions that the entries make, in the order of the approvals. Unknown entries are ignored.

    Raises:
        AppError: VALIDATION_ERROR for an interrupt that is answered twice, has expired, or gets an invalid payload.
    """
    by_interrupt = _by_interrupt(approvals, entries)
    decisions = []
    for approval in approvals:
        named = [
            (interrupt, *by_interrupt[interrupt.id])
            for interrupt in approval.interrupts
            if interrupt.id in by_interrupt
        ]
        for interrupt, at, entry in named:
            if not approval.is_settled and entry.status != "cancelled":
                _check_expiry(interrupt, at, now)
        if named:
            answers = [_answer(*each) for each in named]
            decisions.append(Decision(approval, [entry for _, _, entry in named], answers[0]))
    return decisions


def _by_interrupt(approvals: Sequence[Approval], entries: Sequence[ResumeEntry]) -> dict[str, tuple[int, ResumeEntry]]:
    """Return the entries that name an interrupt of the approvals, by interrupt id, with their indexes."""
    interrupt_ids = {interrupt.id for approval in approvals for interrupt in approval.interrupts}
    found: dict[str, tuple[int, ResumeEntry]] = {}
    for at, entry in enumerate(entries):
        if entry.interrupt_id in found:
            raise AppError(ErrorCode.VALIDATION_ERROR, f"resume.{at}.interruptId: this interrupt is answered twice.")
        if entry.interrupt_id in interrupt_ids:
            found[entry.interrupt_id] = (at, entry)
    return found


def _check_expiry(interrupt: Interrupt, at: int, now: float) -> None:
    if interrupt.expires_at is not None and datetime.fromisoformat(interrupt.expires_at).timestamp() <= now:
        raise AppError(ErrorCode.VALIDATION_ERROR, f"resume.{at}: this interrupt has expired; cancel it to go on.")


def _answer(interrupt: Interrupt, at: int, entry: ResumeEntry) -> ApprovalAnswer | None:
    """Parse the answer to an approval. Return None if it is cancelled or the interrupt is a subagent's own."""
    if entry.status == "cancelled" or interrupt.response_schema != RESPONSE_SCHEMA:
        return None
    where = f"resume.{at}.payload"
    try:
        answer = ApprovalAnswer.model_validate(entry.payload)
    except ValidationError as error:
        path = error.errors(include_url=False, include_context=False, include_input=False)[0]["loc"]
        raise AppError(ErrorCode.VALIDATION_ERROR, f"{where}{_describe_problem(path)}.") from None
    if answer.edited_args is not None and not _is_sendable(answer.edited_args):
        raise AppError(ErrorCode.VALIDATION_ERROR, f"{where}.editedArgs: cannot be written as JSON.")
    return answer


def _describe_problem(path: Sequence[int | str]) -> str:
    """Return the path to the invalid field of a payload, and the value that is expected there."""
    if not path:
        return f": must be an object with {', '.join(EXPECTED)}, of which the first is required"
    name = str(path[0])
    return f".{name[:MAX_SHOWN_FIELD]}: {EXPECTED.get(name, 'is not a field of an answer')}"


def _is_sendable(arguments: dict[str, object]) -> bool:
    """Return True if the arguments can be encoded as JSON: no infinite numbers, no excessive nesting."""
    try:
        return is_object(to_json(arguments).decode())
    except ValueError:
        return False
