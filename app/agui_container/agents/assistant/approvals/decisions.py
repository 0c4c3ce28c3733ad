"""What answers decide: the entries of ``resume``, matched to the calls that wait and checked.

Rule: an answer that cannot be taken is refused before any call begins, in one sentence that names the field.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ag_ui.core import Interrupt, ResumeEntry
from msgspec import Struct
from pydantic import ValidationError
from pydantic_core import to_json

from agui_container.agents.assistant.approvals.approvals import MAX_REASON, RESPONSE_SCHEMA, Approval, ApprovalAnswer
from agui_container.agents.assistant.model_turn import ModelToolCall
from agui_container.agents.assistant.toolbox import is_object
from agui_container.protocol.errors import AppError, ErrorCode

SHOWN_FIELD = 64
"""Characters of a field's name that nobody knows, said back."""

EXPECTED = {
    "approved": "must be true or false",
    "reason": f"must be a text of at most {MAX_REASON} characters",
    "editedArgs": "must be an object",
}


class Decision(Struct, frozen=True):
    """An approval and what was decided: the entries, and what they say of a call that has not begun."""

    approval: Approval
    entries: Sequence[ResumeEntry]
    answer: ApprovalAnswer | None

    @property
    def call(self) -> ModelToolCall:
        """The call as it is from now on: as it was asked for, or edited. One that has begun is past that."""
        if self.approval.suspension or not (self.answer and self.answer.approved) or self.answer.edited_args is None:
            return self.approval.call
        return replace(self.approval.call, arguments=to_json(self.answer.edited_args).decode())


def match_answers(approvals: Sequence[Approval], entries: Sequence[ResumeEntry], now: float) -> list[Decision]:
    """What the entries decide, in the order of the approvals. Entries that name none of them are left out.

    Raises:
        AppError: VALIDATION_ERROR for two answers to one interrupt, one to what has expired, or one of another form.
    """
    found = _by_interrupt(approvals, entries)
    decided = []
    for approval in approvals:
        named = [(interrupt, *found[interrupt.id]) for interrupt in approval.interrupts if interrupt.id in found]
        for interrupt, at, entry in named:
            if not approval.is_settled and entry.status != "cancelled":
                _check_expiry(interrupt, at, now)
        if named:
            answers = [_answer(*each) for each in named]
            decided.append(Decision(approval, [entry for _, _, entry in named], answers[0]))
    return decided


def _by_interrupt(approvals: Sequence[Approval], entries: Sequence[ResumeEntry]) -> dict[str, tuple[int, ResumeEntry]]:
    """The entries that name an interrupt, with their places in the list."""
    known = {interrupt.id for approval in approvals for interrupt in approval.interrupts}
    found: dict[str, tuple[int, ResumeEntry]] = {}
    for at, entry in enumerate(entries):
        if entry.interrupt_id in found:
            raise AppError(ErrorCode.VALIDATION_ERROR, f"resume.{at}.interruptId: this interrupt is answered twice.")
        if entry.interrupt_id in known:
            found[entry.interrupt_id] = (at, entry)
    return found


def _check_expiry(interrupt: Interrupt, at: int, now: float) -> None:
    if interrupt.expires_at is not None and datetime.fromisoformat(interrupt.expires_at).timestamp() <= now:
        raise AppError(ErrorCode.VALIDATION_ERROR, f"resume.{at}: this interrupt has expired; cancel it to go on.")


def _answer(interrupt: Interrupt, at: int, entry: ResumeEntry) -> ApprovalAnswer | None:
    """The answer to an interrupt of this module; None where it was abandoned, or somebody else asked."""
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
    """Where a payload is wrong, and what was expected there."""
    if not path:
        return f": must be an object with {', '.join(EXPECTED)}, of which the first is required"
    name = str(path[0])
    return f".{name[:SHOWN_FIELD]}: {EXPECTED.get(name, 'is not a field of an answer')}"


def _is_sendable(arguments: dict[str, object]) -> bool:
    """Whether a tool can be called with them: numbers may be infinite, and nesting too deep."""
    try:
        return is_object(to_json(arguments).decode())
    except ValueError:
        return False
