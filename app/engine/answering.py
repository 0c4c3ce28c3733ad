"""An answer to an interrupt that comes under the ids of the run that asked.

Rule: it is no retry of that run, which would be replayed while the answer is lost, but a run of its own (AG-UI spec
1.1, basic/patterns/interrupt-resume: continuing means a new run). CopilotKit's ``useInterrupt`` sends it so (issue 6999
there). Its id follows from that of the run and the answer, so that the same answer again joins it.
"""

import hashlib
from collections.abc import Collection

from ag_ui.core import RunAgentInput
from pydantic_core import from_json, to_json

DIGITS = 12


def is_answer(run_input: RunAgentInput, asked: Collection[str]) -> bool:
    """Whether it answers one of these interrupts."""
    return any(entry.interrupt_id in asked for entry in run_input.resume or ())


def asked_at_end(event: bytes) -> Collection[str]:
    """The ids of the interrupts that a run's last event has."""
    outcome = from_json(event).get("outcome") or {}
    return frozenset(interrupt["id"] for interrupt in outcome.get("interrupts", ()))


def under_an_id_of_its_own(run_input: RunAgentInput) -> RunAgentInput:
    """The same input, as a run that nobody has asked for yet, or in the same words only."""
    digest = hashlib.sha256(to_json(run_input.resume, by_alias=True)).hexdigest()[:DIGITS]
    return run_input.model_copy(update={"run_id": f"{run_input.run_id}.{digest}"})
