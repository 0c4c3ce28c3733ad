"""kontekst's start command as the input of an AG-UI run.

Rule: pure translation. Every run of this protocol needs an approval for every tool, and a denial cancels the run, also
one by a client of another protocol. An approval that has expired before a run begins is no denial: the run answers its
prompt.
Source: kontekst's API reference (proto/kontekst/kontekst.proto).
"""

from collections.abc import Mapping, Sequence

from ag_ui.core import PROTOCOL_VERSION, Context, RunAgentInput, UserMessage
from msgspec import Struct

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.transports.conversation.approvals import (
    ApprovalDecision,
    ApprovalRequest,
    Verdict,
    resume_entry,
)
from agui_container.transports.gen.kontekst.kontekst_pb2 import StartRunCommand
from agui_container.transports.kontekst.context import UNBOUNDED, Row

BUDGET = {"contextTokens": UNBOUNDED}
"""The assistant counts tokens for context snapshots only if it has a budget."""

PROPS = {"approvals": {"ask": "all", "onDenial": "cancel"}, "budget": BUDGET}


class RunStart(Struct, frozen=True):
    """A start command, and what its thread adds to it.

    Attributes:
        message_id: id of the prompt in the thread.
        choice: fields of ``forwardedProps`` that choose the agent.
        expired: approvals that have expired while no client waited. The run abandons them.
        history: counts of the messages before the run, for agents that do not report their context.
    """

    command: StartRunCommand
    message_id: str
    choice: Mapping[str, object] = {}
    expired: Sequence[ApprovalRequest] = ()
    history: Sequence[Row] = ()


def run_input(start: RunStart, thread_id: str, run_id: str) -> RunAgentInput:
    """Return the input of the run that a start command begins.

    Raises:
        AppError: VALIDATION_ERROR for a command without a prompt and a skill.
    """
    command = start.command
    skill = {"name": command.skill.name, "arguments": command.skill.arguments} if command.HasField("skill") else None
    if not command.prompt and skill is None:
        raise AppError(ErrorCode.VALIDATION_ERROR, "start: a prompt or a skill is expected.")
    prompt = UserMessage(id=start.message_id, role="user", content=command.prompt)
    folder = Context(description="The user's working directory", value=command.working_dir)
    resume = [resume_entry(request, ApprovalDecision(request.call_id, Verdict.EXPIRED)) for request in start.expired]
    return RunAgentInput(
        thread_id=thread_id,
        run_id=run_id,
        protocol_version=PROTOCOL_VERSION,
        messages=[prompt] if command.prompt else [],
        tools=[],
        context=[folder] if command.working_dir else [],
        forwarded_props={**PROPS, **start.choice, **({"skill": skill} if skill else {})},
        resume=resume or None,
    )
