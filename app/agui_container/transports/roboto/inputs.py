"""Roboto's requests as run inputs.

Rule: pure; ids and times are given. A request becomes one run, in the words that any AG-UI client would use.
"""

import json
from collections.abc import Mapping, Sequence

from ag_ui.core import (
    PROTOCOL_VERSION,
    AssistantMessage,
    Context,
    Message,
    RunAgentInput,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)
from msgspec import Struct

from agui_container.transports.roboto import goals as roboto_goals
from agui_container.transports.roboto.notes import MessageNotes, Notes
from agui_container.transports.roboto.requests import (
    Goal,
    Scope,
    SendRequest,
    SentMessage,
    StartRequest,
    ToolResult,
    ToolSpec,
)

ACHIEVE_GOALS = "Achieve the goals of this turn."
USE_SKILL = "Use the skill {skill}."
VIEWING = "What the user is looking at in the client"
SCOPE = "The range of time to analyse, in nanoseconds since the epoch, both ends included"


class Run(Struct, frozen=True):
    """What a run is made of besides the request.

    Attributes:
        now: Unix seconds.
        notes: the session's facts, those of the request included.
    """

    thread_id: str
    run_id: str
    now: float
    notes: Notes
    goals: Sequence[Goal] = ()


def started(run: Run, request: StartRequest) -> RunAgentInput:
    """Return the input of the run that begins a session."""
    earlier, last = list(request.messages), None
    if earlier and earlier[-1].role == "user":
        last = earlier.pop()
    prompt = [SystemMessage(id=f"{run.run_id}-system", content=request.system_prompt)] if request.system_prompt else []
    seeded = [_seeded(message, f"{run.run_id}-{at}", run.now) for at, message in enumerate(earlier)]
    return _asking(run, request, [*prompt, *seeded, _question(run, request, last, is_held=False)])


def sent(run: Run, request: SendRequest) -> RunAgentInput:
    """Return the input of the run that answers a message."""
    question = _question(run, request, request.message, is_held=request.message is not None)
    return _asking(run, request, [question])


def answered(run: Run, results: Sequence[ToolResult]) -> RunAgentInput:
    """Return the input of the run that goes on with the results of client tools."""
    messages = [_result(f"{run.run_id}-{at}", result) for at, result in enumerate(results)]
    return _run_input(run, messages, _contexts(None, run.notes.scope), {})


def _asking(run: Run, request: StartRequest | SendRequest, messages: Sequence[Message]) -> RunAgentInput:
    forwarded: dict[str, object] = {}
    if run.goals:
        forwarded["goals"] = roboto_goals.declared(run.goals)
    if request.invoke_skills:
        forwarded["skill"] = {"name": request.invoke_skills[0].skill_id}
    contexts = [*_contexts(request.client_context, run.notes.scope), *roboto_goals.contexts(run.goals)]
    return _run_input(run, messages, contexts, forwarded)


def _run_input(
    run: Run, messages: Sequence[Message], contexts: Sequence[Context], forwarded: Mapping[str, object]
) -> RunAgentInput:
    """The input of a run. A second run on the thread is refused, whatever ``AGUI_ON_BUSY`` says."""
    return RunAgentInput(
        thread_id=run.thread_id,
        run_id=run.run_id,
        protocol_version=PROTOCOL_VERSION,
        state=None,
        messages=list(messages),
        tools=[_tool(spec) for spec in run.notes.tools],
        context=list(contexts),
        forwarded_props={**forwarded, "onBusy": "reject"},
    )


def _question(
    run: Run, request: StartRequest | SendRequest, message: SentMessage | None, *, is_held: bool
) -> UserMessage:
    """The message that begins a turn; where the client sent none, one that says what the turn is for."""
    skills = request.invoke_skills or ()
    text = ACHIEVE_GOALS if run.goals or not skills else USE_SKILL.format(skill=skills[0].skill_id)
    notes = MessageNotes(
        run.run_id,
        run.now,
        sent=is_held,
        goals=[goal.model_dump(mode="json", by_alias=True) for goal in run.goals],
        context=request.client_context,
    )
    content = text if message is None else message.text
    return UserMessage(id=f"{run.run_id}-user", content=content, metadata=notes.metadata())


def _seeded(message: SentMessage, message_id: str, now: float) -> Message:
    if message.role == "user":
        return UserMessage(id=message_id, content=message.text, metadata=MessageNotes(created=now).metadata())
    return AssistantMessage(id=message_id, content=message.text)


def _result(message_id: str, result: ToolResult) -> ToolMessage:
    output = result.output or {}
    error = output.get("error", "The client's tool failed." if result.status == "error" else "The user declined it.")
    notes = MessageNotes(status=result.status, runtime_ms=result.runtime_ms)
    return ToolMessage(
        id=message_id,
        tool_call_id=result.tool_use_id,
        content=json.dumps(output, ensure_ascii=False),
        error=None if result.status == "success" else str(error),
        metadata=notes.metadata(),
    )


def _tool(spec: ToolSpec) -> Tool:
    return Tool(name=spec.name, description=spec.description, parameters=spec.input_schema or {"type": "object"})


def _contexts(viewing: Mapping[str, object] | None, scope: Scope | None) -> list[Context]:
    known = {name: value for name, value in (viewing or {}).items() if value}
    contexts = [Context(description=VIEWING, value=json.dumps(known, ensure_ascii=False))] if known else []
    if scope is not None and (scope.start_time is not None or scope.end_time is not None):
        contexts.append(Context(description=SCOPE, value=scope.model_dump_json(exclude_none=True)))
    return contexts
