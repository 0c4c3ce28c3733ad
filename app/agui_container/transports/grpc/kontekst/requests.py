"""kontekst's commands as inputs of AG-UI runs.

Rule: pure translation. Every run of this protocol needs an approval for every tool, and a denial cancels the run. An
approval that has expired before a run begins is no denial: the run answers its prompt.
Source: kontekst's API reference (proto/kontekst/kontekst.proto).
"""

from collections.abc import Sequence

from ag_ui.core import PROTOCOL_VERSION, Context, ResumeEntry, RunAgentInput, UserMessage

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.transports.grpc.gen.kontekst.kontekst_pb2 import StartRunCommand

UNBOUNDED = 2**31 - 1
"""A context budget that no prompt exceeds, and the size of a context that is unknown: the largest ``int32``.

The assistant counts tokens for context snapshots only if it has a budget.
"""

BUDGET = {"contextTokens": UNBOUNDED}
FIRST_PROPS = {"approvals": {"ask": "all"}, "budget": BUDGET}
NEXT_PROPS = {"approvals": {"ask": "all", "onDenial": "cancel"}, "budget": BUDGET}


def first_input(
    start: StartRunCommand, thread_id: str, run_id: str, message_id: str, expired: Sequence[ResumeEntry]
) -> RunAgentInput:
    """Return the input of the run that a start command begins. It abandons the thread's ``expired`` approvals.

    Raises:
        AppError: VALIDATION_ERROR for a command without a prompt and a skill.
    """
    skill = {"name": start.skill.name, "arguments": start.skill.arguments} if start.HasField("skill") else None
    if not start.prompt and skill is None:
        raise AppError(ErrorCode.VALIDATION_ERROR, "start: a prompt or a skill is expected.")
    return RunAgentInput(
        thread_id=thread_id,
        run_id=run_id,
        protocol_version=PROTOCOL_VERSION,
        messages=[UserMessage(id=message_id, role="user", content=start.prompt)] if start.prompt else [],
        tools=[],
        context=_context(start),
        forwarded_props={**FIRST_PROPS, **({"skill": skill} if skill else {})},
        resume=list(expired) or None,
    )


def next_input(start: StartRunCommand, thread_id: str, run_id: str, answers: Sequence[ResumeEntry]) -> RunAgentInput:
    """Return the input of the run that continues with the client's decisions."""
    return RunAgentInput(
        thread_id=thread_id,
        run_id=run_id,
        protocol_version=PROTOCOL_VERSION,
        messages=[],
        tools=[],
        context=_context(start),
        forwarded_props=NEXT_PROPS,
        resume=list(answers),
    )


def _context(start: StartRunCommand) -> list[Context]:
    if not start.working_dir:
        return []
    return [Context(description="The user's working directory", value=start.working_dir)]
