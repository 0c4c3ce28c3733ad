"""Inputs with the ids of a known run: retries, and answers to its interrupts.

Rule: a retry joins its run. The ids of a run with other messages are refused, because the answer of that run would pass
for the answer to these messages. Each run has a fingerprint of its messages, which is stored with it. An input without
messages joins the run. Messages of the assistant at the end do not count, because a client may have them
from the run itself.

Rule: an answer under the ids of the interrupted run is not a retry of that run, which would only replay it. It becomes
a new run (AG-UI spec 1.1, basic/patterns/interrupt-resume: continuing means a new run). CopilotKit's ``useInterrupt``
sends answers in this way (CopilotKit issue 6999). It also answers the interrupts of the new run under the first id,
because it knows no other. The new id is derived from the first id and the answer, so that a retry joins the new run.
"""

import hashlib
from collections.abc import Sequence

from ag_ui.core import ActivityMessage, AssistantMessage, Interrupt, Message, ReasoningMessage, RunAgentInput
from pydantic_core import from_json, to_json

from agui_container.conversation.merge import dump_message
from agui_container.protocol.errors import AppError, ErrorCode
from agui_core.commands import MAX_ID

FINGERPRINT_BYTES = 16


def fingerprint_of(messages: Sequence[Message]) -> bytes:
    end = len(messages)
    while end and isinstance(messages[end - 1], AssistantMessage | ReasoningMessage | ActivityMessage):
        end -= 1
    if not end:
        return b""
    hashed = hashlib.blake2b(digest_size=FINGERPRINT_BYTES)
    for message in messages[:end]:
        data = dump_message(message)
        hashed.update(b"%d:" % len(data))
        hashed.update(data)
    return hashed.digest()


def check_same_messages(fingerprint: bytes | None, of_run: bytes | None) -> None:
    """Raise ``AppError`` VALIDATION_ERROR unless one of them is None or empty, or both are equal."""
    if fingerprint and of_run is not None and fingerprint != of_run:
        text = "runId: this run began with other messages. Send new messages with a new runId."
        raise AppError(ErrorCode.VALIDATION_ERROR, text)


# --- answers ----------------------------------------------------------------------------------------------------------

DIGEST_DIGITS = 12
"""Hexadecimal digits of a derived id."""


def interrupts_of(event: bytes) -> Sequence[Interrupt]:
    outcome = from_json(event).get("outcome") or {}
    return [Interrupt.model_validate(interrupt) for interrupt in outcome.get("interrupts", ())]


def is_answer(run_input: RunAgentInput, interrupts: Sequence[Interrupt]) -> bool:
    ids = {interrupt.id for interrupt in interrupts}
    return any(entry.interrupt_id in ids for entry in run_input.resume or ())


def is_derived_run(run_id: str, interrupted_id: str) -> bool:
    return run_id.startswith(_prefix(interrupted_id))


def with_derived_run_id(run_input: RunAgentInput) -> RunAgentInput:
    """Return the same input with a run id that depends on its own id and its answers."""
    digest = hashlib.sha256(to_json(run_input.resume, by_alias=True)).hexdigest()[:DIGEST_DIGITS]
    return run_input.model_copy(update={"run_id": f"{_prefix(run_input.run_id)}{digest}"})


def _prefix(run_id: str) -> str:
    # Shortened, so that the derived id is within MAX_ID and clients can cancel and read the run.
    return f"{run_id[: MAX_ID - DIGEST_DIGITS - 1]}."
