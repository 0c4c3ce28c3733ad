"""What a run has asked with its last event, and an answer to it that comes under the ids of that run.

Rule: such an answer is no retry of the run, which would be replayed while the answer is lost, but a run of its own
(AG-UI spec 1.1, basic/patterns/interrupt-resume: continuing means a new run). CopilotKit's ``useInterrupt`` sends it so
(issue 6999 there), and an answer to what this run asks as well: it knows the id that it has sent, and no other. The new
id follows from that of the run and the answer, so that the same answer again joins it.
"""

import hashlib
from collections.abc import Sequence

from ag_ui.core import Interrupt, RunAgentInput
from pydantic_core import from_json, to_json

from agui_container.protocol.commands import MAX_ID

DIGITS = 12


def interrupts_of(last: bytes) -> Sequence[Interrupt]:
    """The interrupts of the last event of a run that has ended with some."""
    return [Interrupt.model_validate(interrupt) for interrupt in from_json(last)["outcome"]["interrupts"]]


def is_answer(run_input: RunAgentInput, asked: Sequence[Interrupt]) -> bool:
    """Whether it answers one of these interrupts."""
    ids = {interrupt.id for interrupt in asked}
    return any(entry.interrupt_id in ids for entry in run_input.resume or ())


def is_derived_run(run_id: str, asking: str) -> bool:
    """Whether a run of this id is an answer to the other."""
    return run_id.startswith(_root(asking))


def with_derived_run_id(run_input: RunAgentInput) -> RunAgentInput:
    """The same input, as a run that nobody has asked for yet, or in the same words only."""
    digest = hashlib.sha256(to_json(run_input.resume, by_alias=True)).hexdigest()[:DIGITS]
    return run_input.model_copy(update={"run_id": f"{_root(run_input.run_id)}{digest}"})


def _root(run_id: str) -> str:
    # The whole is no longer than an id may be: else nobody could name the run, to cancel it or to read it again.
    return f"{run_id[: MAX_ID - DIGITS - 1]}."
