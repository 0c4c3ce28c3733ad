"""Questions to people about calls: the interrupt that asks for an approval, the answers, and the demands of a caller.

Rules:
- An invalid answer raises ``AppError`` VALIDATION_ERROR before any call starts, with one sentence that names the field.
- A caller can demand more approvals than the operator's policy (``forwardedProps.approvals``), never fewer. The demand
  holds for subagents, too, and for the rest of the turn, whoever answers.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from ag_ui.core import Interrupt, ResumeEntry
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import to_json

from agui_container.agents.gate.calls import ApprovalAnswer, CallNote, ModelToolCall, parse_arguments
from agui_container.agents.gate.toolbox import DECLINED
from agui_container.log_values import format_fields
from agui_container.ports import CallRules, PolicyDecision, RunContext, ToolError
from agui_container.protocol.errors import validation_error
from agui_container.protocol.field_errors import field_errors
from agui_container.protocol.parser import read_forwarded_prop

TOOL_CALL = "tool_call"
"""AG-UI's reason for the interrupt of a tool call (docs, concepts/interrupts). Clients show buttons for it."""

MAX_SHOWN_ARGUMENTS = 500
"""Maximum characters of the arguments in an interrupt's message. Its metadata has the complete arguments."""

RESPONSE_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": "string"},
        "editedArgs": {"type": "object"},
    },
    "required": ["approved"],
}
"""JSON Schema of an answer, equal to the one in AG-UI's docs (concepts/interrupts).

assistant-ui shows no buttons for a stricter schema.
"""

MAX_LOGGED_ID = 100
"""Maximum characters of an unknown id in the log."""


def approval_interrupt(
    call: ModelToolCall, decision: PolicyDecision, id_: str, expires_at: float, details: Mapping[str, object]
) -> Interrupt:
    """Return the interrupt for a call that must be approved. ``details`` are the tool's facts about the call."""
    facts = {"category": decision.category, "reason": decision.reason, **details}
    metadata: dict[str, object] = {"toolName": call.name, "arguments": call.arguments}
    metadata |= {name: fact for name, fact in facts.items() if fact is not None}
    return Interrupt(
        id=id_,
        reason=TOOL_CALL,
        message=f"Allow {call.name} with {clip_arguments(call.arguments) or '{}'}?",
        tool_call_id=call.id,
        response_schema=RESPONSE_SCHEMA,
        expires_at=datetime.fromtimestamp(expires_at, UTC).isoformat(timespec="seconds"),
        metadata=metadata,
    )


def call_question(call_id: str | None, name: str, arguments: str, interrupt_id: str | None = None) -> Interrupt:
    """Return the interrupt that asks for a call. Its id is that of the call if the framework has no other."""
    return Interrupt(
        id=interrupt_id or call_id or name,
        reason=TOOL_CALL,
        message=f"Allow {name} with {clip_arguments(arguments) or '{}'}?",
        tool_call_id=call_id,
        response_schema=RESPONSE_SCHEMA,
        metadata={"toolName": name, "arguments": arguments},
    )


def clip_arguments(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_ARGUMENTS else f"{text[:MAX_SHOWN_ARGUMENTS]}…"


class ApprovalOptions(BaseModel):
    """``forwardedProps.approvals``: ask for every call that the server answers, and end a run with a denial."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    ask: Literal["policy", "all"] = "policy"
    on_denial: Literal["tell", "cancel"] = "tell"


_OPTIONS = TypeAdapter(ApprovalOptions)
_ANSWER = TypeAdapter(ApprovalAnswer)


def with_demands(rules: CallRules, props: object) -> CallRules:
    """Return the rules with the demands in a run's ``forwardedProps``, which never take back a rule."""
    options = read_forwarded_prop(props, "approvals", _OPTIONS)
    if options is None:
        return rules
    return rules.with_demands(asks_always=options.ask == "all", cancels_on_denial=options.on_denial == "cancel")


# --- answers ---------------------------------------------------------------------------------------------------------


class Decision(Struct, frozen=True):
    """The answer of a run to a call: the entries of ``resume`` that name its interrupts.

    ``answer`` is what they say of its approval, and None if the call has asked something else.
    """

    note: CallNote
    entries: Sequence[ResumeEntry]
    answer: ApprovalAnswer | None

    @property
    def is_cancelled(self) -> bool:
        return all(entry.status == "cancelled" for entry in self.entries)

    def rejection(self, *, is_edited_away: bool) -> str | None:
        """Return the result of a rejected call, or None if the call runs.

        A suspended call gets the answer itself, unless it is cancelled and nobody sees the call any more.
        """
        if self.note.suspension is not None:
            return DECLINED if self.is_cancelled and is_edited_away else None
        if self.is_cancelled or self.answer is None:
            return DECLINED
        if self.answer.approved:
            return None
        return f"Error: the user denied this call{f': {self.answer.reason}' if self.answer.reason else '.'}"


def match_answers(notes: Sequence[CallNote], entries: Sequence[ResumeEntry], now: float) -> list[Decision]:
    """Return the decisions that a run makes, in the order of the calls. Unknown entries are ignored."""
    by_interrupt = answers_by_interrupt(entries, [each.id for note in notes for each in note.interrupts])
    decisions = []
    for note in notes:
        named = [(each, *by_interrupt[each.id]) for each in note.interrupts if each.id in by_interrupt]
        resolved = [each for each in named if each[2].status != "cancelled"]
        answers = [read_answer(*each, None if note.is_settled else now) for each in resolved]
        if named:
            answer = answers[0] if answers else ApprovalAnswer(approved=False)
            decisions.append(Decision(note, [entry for *_, entry in named], answer))
    return decisions


def answers_by_interrupt(
    entries: Sequence[ResumeEntry], interrupt_ids: Collection[str]
) -> dict[str, tuple[int, ResumeEntry]]:
    """Return the entries that name one of the interrupts, by interrupt id, with their indexes."""
    found: dict[str, tuple[int, ResumeEntry]] = {}
    for at, entry in enumerate(entries):
        if entry.interrupt_id in found:
            raise validation_error(f"resume.{at}.interruptId: this interrupt is answered twice.")
        if entry.interrupt_id in interrupt_ids:
            found[entry.interrupt_id] = (at, entry)
    return found


def read_answer(interrupt: Interrupt, at: int, entry: ResumeEntry, now: float | None) -> ApprovalAnswer | None:
    """Parse the answer to an approval, the entry at index ``at``. Return None for an answer to another question."""
    if now is not None and interrupt.expires_at and datetime.fromisoformat(interrupt.expires_at).timestamp() <= now:
        raise validation_error(f"resume.{at}: this interrupt has expired; cancel it to go on.")
    if interrupt.response_schema != RESPONSE_SCHEMA:
        return None
    where = f"resume.{at}.payload"
    try:
        answer = _ANSWER.validate_python(entry.payload)
        parse_arguments(to_json(answer.edited_args or {}).decode())
    except ValidationError as error:
        raise field_errors(error, _ANSWER, where) from None
    except (ToolError, ValueError):
        raise validation_error(f"{where}.editedArgs: cannot be written as JSON.") from None
    return answer


def read_decision(at: int, entry: ResumeEntry) -> bool | None:
    """Return None if the entry is no answer to an approval. Raises ``AppError`` VALIDATION_ERROR."""
    if entry.status == "cancelled" or not (isinstance(entry.payload, dict) and "approved" in entry.payload):
        return None
    try:
        answer = ApprovalAnswer.model_validate(entry.payload)
    except ValidationError:
        raise validation_error(f"resume.{at}.payload: approved must be true or false.") from None
    if answer.edited_args is not None:
        raise validation_error(f"resume.{at}.payload.editedArgs: this agent's calls stay as made.")
    return answer.approved


def warn_of_unknown(entries: Sequence[ResumeEntry], ctx: RunContext) -> None:
    """Log one line if a run has entries that answer no known interrupt."""
    if entries:
        fields = {"count": len(entries), "first": entries[0].interrupt_id[:MAX_LOGGED_ID]}
        ctx.logger.warning("answers to unknown interrupts ignored %s", format_fields(fields))
