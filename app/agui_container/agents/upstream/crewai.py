"""Questions of crewAI behind a URL: ``ag-ui-crewai`` 1.0 and a flow that asks with ``@human_feedback``.

Rules:

- If the method that asks returns a call of the model, the interrupt is this server's approval of that call.
- The package gives each interrupt the id of the thread, and takes every answer for the one that it waits for. Here each
  has an id of its own, and an approval is refused once its call is no longer open.
- A cancelled question is a refusal. The package has no answer of that kind.
"""

from collections.abc import Container

from ag_ui.core import (
    BaseEvent,
    Interrupt,
    ResumeEntry,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    ToolCall,
)
from pydantic import BaseModel, ValidationError

from agui_container.agents.gate.approval import call_question, read_decision
from agui_container.ports import RunContext
from agui_container.protocol.errors import validation_error
from agui_core.turns import unanswered_in_last_turn

REASON = "crewai:human_feedback"
APPROVAL = "crewai:approval:"
REVIEW = "crewai:review:"
"""Beginnings of the ids of interrupts: of those about a call, and of all others."""

REFUSED = "The user refused."
"""Feedback in place of a cancelled answer. A flow without a call has no other form of a refusal than a text."""


class Review(BaseModel):
    """What the package says of the method that asks. ``output`` is what it returned."""

    output: ToolCall


class Details(BaseModel):
    """The metadata of the package's interrupt."""

    crewai: Review


def with_own_questions(event: BaseEvent, ctx: RunContext) -> BaseEvent:
    """Return the event with the interrupts of crewAI in this server's form."""
    if not (isinstance(event, RunFinishedEvent) and isinstance(event.outcome, RunFinishedInterruptOutcome)):
        return event
    interrupts = [question_of(each, ctx) if each.reason == REASON else each for each in event.outcome.interrupts]
    return event.model_copy(update={"outcome": RunFinishedInterruptOutcome(interrupts=interrupts)})


def question_of(interrupt: Interrupt, ctx: RunContext) -> Interrupt:
    try:
        call = Details.model_validate(interrupt.metadata).crewai.output
    except ValidationError:
        return interrupt.model_copy(update={"id": f"{REVIEW}{ctx.new_id()}"})
    question = call_question(call.id, call.function.name, call.function.arguments, f"{APPROVAL}{call.id}")
    return question.model_copy(update={"message": interrupt.message or question.message})


def with_answers(request: RunAgentInput) -> RunAgentInput:
    """Return the request with the answers as a flow reads them. Raises ``AppError`` VALIDATION_ERROR."""
    if not request.resume:
        return request
    waiting = {call.id for call in unanswered_in_last_turn(request.messages)}
    answers = [answer_of(at, entry, waiting) for at, entry in enumerate(request.resume)]
    return request.model_copy(update={"resume": answers})


def answer_of(at: int, entry: ResumeEntry, waiting: Container[str]) -> ResumeEntry:
    is_cancelled = entry.status == "cancelled"
    if entry.interrupt_id.startswith(REVIEW):
        return entry.model_copy(update={"status": "resolved", "payload": REFUSED}) if is_cancelled else entry
    if not entry.interrupt_id.startswith(APPROVAL):
        return entry
    if entry.interrupt_id.removeprefix(APPROVAL) not in waiting:
        raise validation_error("The thread does not wait for this answer.")
    approved = False if is_cancelled else read_decision(at, entry)
    if approved is None:
        raise validation_error(f"resume.{at}.payload: approved must be true or false.")
    return entry.model_copy(update={"status": "resolved", "payload": {"approved": approved}})
