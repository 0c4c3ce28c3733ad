"""Roboto's requests as run inputs.

Rule: pure functions; ids and times are parameters. A request becomes one run input, like that of any AG-UI client.
The schema of a goal's data is that of Roboto's own result, so that a client can build its typed result from the call
that achieved the goal.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from ag_ui.core import (
    PROTOCOL_VERSION,
    AssistantMessage,
    Context,
    Message,
    ResumeEntry,
    RunAgentInput,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)
from msgspec import Struct

from agui_container.transports.roboto.notes import MessageNotes, Notes
from agui_container.transports.roboto.requests import (
    AnalysisScope,
    CreateEvents,
    DatasetSummary,
    DatasetTriage,
    GenericGoal,
    Goal,
    SendRequest,
    SentMessage,
    SentToolResult,
    StartRequest,
    ToolSpec,
)

ACHIEVE_GOALS = "Achieve the goals of this turn."
USE_SKILL = "Use the skill {skill}."
VIEWING = "What the user is looking at in the client"
SCOPE = "The range of time to analyse, in nanoseconds since the epoch, both ends included"


class NewRun(Struct, frozen=True):
    """Facts of a run besides those of the request.

    Attributes:
        now: Unix seconds.
        notes: facts of the session, including those of the request.
        interrupt_ids: interrupts that wait for an answer.
        denied: ids of the calls that wait with them.
    """

    thread_id: str
    run_id: str
    now: float
    notes: Notes
    goals: Sequence[Goal] = ()
    interrupt_ids: Sequence[str] = ()
    denied: Sequence[str] = ()


def start_input(run: NewRun, request: StartRequest) -> RunAgentInput:
    """Return the input of the run that begins a session."""
    earlier, last = list(request.messages), None
    if earlier and earlier[-1].role == "user":
        last = earlier.pop()
    prompt = [SystemMessage(id=f"{run.run_id}-system", content=request.system_prompt)] if request.system_prompt else []
    earlier_messages = [_earlier_message(message, f"{run.run_id}-{at}", run.now) for at, message in enumerate(earlier)]
    return _turn_input(run, request, [*prompt, *earlier_messages, _question(run, request, last, is_sent=False)])


def message_input(run: NewRun, request: SendRequest) -> RunAgentInput:
    """Return the input of the run that answers a message.

    The interrupts that wait are cancelled, because this protocol has no answers to them. Their calls count as denied.
    """
    question = _question(run, request, request.message, is_sent=request.message is not None)
    resume = [ResumeEntry(interrupt_id=interrupt_id, status="cancelled") for interrupt_id in run.interrupt_ids]
    return _turn_input(run, request, [question]).model_copy(update={"resume": resume or None})


def results_input(run: NewRun, results: Sequence[SentToolResult]) -> RunAgentInput:
    """Return the input of the run that continues with results of client tools."""
    messages = [_result(f"{run.run_id}-{at}", result) for at, result in enumerate(results)]
    return _run_input(run, messages, _contexts(None, run.notes.scope), {})


def _turn_input(run: NewRun, request: StartRequest | SendRequest, messages: Sequence[Message]) -> RunAgentInput:
    forwarded: dict[str, object] = {}
    if run.goals:
        forwarded["goals"] = goal_declarations(run.goals)
    if request.invoke_skills:
        forwarded["skill"] = {"name": request.invoke_skills[0].skill_id}
    contexts = [*_contexts(request.client_context, run.notes.scope), *goal_contexts(run.goals)]
    return _run_input(run, messages, contexts, forwarded)


def _run_input(
    run: NewRun, messages: Sequence[Message], contexts: Sequence[Context], forwarded: Mapping[str, object]
) -> RunAgentInput:
    """Return the input of a run. ``onBusy`` refuses a second run on the thread, for any ``AGUI_ON_BUSY``."""
    model = {"model": run.notes.model_profile} if run.notes.model_profile else {}
    return RunAgentInput(
        thread_id=run.thread_id,
        run_id=run.run_id,
        protocol_version=PROTOCOL_VERSION,
        state=None,
        messages=list(messages),
        tools=[_tool(spec) for spec in run.notes.tools],
        context=list(contexts),
        forwarded_props={**forwarded, **model, "onBusy": "reject"},
    )


def _question(
    run: NewRun, request: StartRequest | SendRequest, message: SentMessage | None, *, is_sent: bool
) -> UserMessage:
    """Return the message that begins a turn. Without a message of the client, the text names the turn's purpose."""
    skills = request.invoke_skills or ()
    text = ACHIEVE_GOALS if run.goals or not skills else USE_SKILL.format(skill=skills[0].skill_id)
    notes = MessageNotes(
        run.run_id,
        run.now,
        is_sent=is_sent,
        goals=[goal.model_dump(mode="json", by_alias=True) for goal in run.goals],
        context=request.client_context,
        denied=list(run.denied),
    )
    content = text if message is None else message.text
    return UserMessage(id=f"{run.run_id}-user", content=content, metadata=notes.metadata())


def _earlier_message(message: SentMessage, message_id: str, now: float) -> Message:
    if message.role == "user":
        return UserMessage(id=message_id, content=message.text, metadata=MessageNotes(created=now).metadata())
    return AssistantMessage(id=message_id, content=message.text)


def _result(message_id: str, result: SentToolResult) -> ToolMessage:
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
    return Tool(name=spec.name, description=spec.description, parameters=spec.input_schema)


def _contexts(client_context: Mapping[str, object] | None, scope: AnalysisScope | None) -> list[Context]:
    view = {name: value for name, value in (client_context or {}).items() if value}
    contexts = [Context(description=VIEWING, value=json.dumps(view, ensure_ascii=False))] if view else []
    if scope is not None and (scope.start_time is not None or scope.end_time is not None):
        contexts.append(Context(description=SCOPE, value=scope.model_dump_json(exclude_none=True)))
    return contexts


JSON = dict[str, object]

TEXT: JSON = {"type": "string"}


def goal_declarations(goals: Sequence[Goal]) -> list[JSON]:
    """Return ``forwardedProps.goals``. Two goals of one type get different names, because AG-UI requires it."""
    seen: Counter[str] = Counter()
    rows: list[JSON] = []
    for goal in goals:
        seen[goal.goal_type] += 1
        number = seen[goal.goal_type]
        name = goal.goal_type if number == 1 else f"{goal.goal_type}_{number}"
        rows.append({"type": name, "schema": schema_of(goal), "description": description_of(goal)})
    return rows


def goal_contexts(goals: Sequence[Goal]) -> list[Context]:
    """Return each goal as context of the run, because vocabularies exceed the length of a description."""
    return [
        Context(description=f"The goal {row['type']}", value=goal.model_dump_json(by_alias=True, exclude_none=True))
        for row, goal in zip(goal_declarations(goals), goals, strict=True)
        if not isinstance(goal, GenericGoal)
    ]


def description_of(goal: Goal) -> str:
    """Return the description of a goal for the agent."""
    match goal:
        case DatasetSummary():
            return f"Summarise the dataset {goal.dataset_id}. The context has the format."
        case DatasetTriage():
            return (
                f"Decide for each label whether it applies to the dataset {goal.dataset_id}, with one decision for "
                "each label and each label once. The context has them."
            )
        case CreateEvents():
            return f"Find events in the dataset {goal.dataset_id}, in nanoseconds. The context has the vocabulary."
        case GenericGoal():
            return goal.description


def schema_of(goal: Goal) -> JSON:
    """Return the JSON Schema of a goal's data."""
    match goal:
        case DatasetSummary():
            return _object({"summary": TEXT}, "summary")
        case DatasetTriage():
            count = len(goal.label_vocabulary)
            decisions: JSON = {"type": "array", "items": _decision(goal), "minItems": count, "maxItems": count}
            decisions["allOf"] = [
                {"contains": {"properties": {"label": {"const": it}}}} for it in goal.label_vocabulary
            ]
            return _object({"label_decisions": decisions}, "label_decisions")
        case CreateEvents():
            return _object({"events": {"type": "array", "items": _event(goal)}}, "events")
        case GenericGoal():
            return dict(goal.json_schema)


def _decision(goal: DatasetTriage) -> JSON:
    label = {"type": "string", "enum": list(goal.label_vocabulary)}
    confidence = {"type": "number", "minimum": 0, "maximum": 1}
    fields: JSON = {"label": label, "applies": {"type": "boolean"}, "justification": TEXT, "confidence": confidence}
    return _object(fields, *fields)


def _event(goal: CreateEvents) -> JSON:
    tag: JSON = {"type": "string", "enum": list(goal.tag_vocabulary)} if goal.tag_vocabulary else TEXT
    fields: JSON = {
        "name": {"type": "string", "enum": list(goal.event_vocabulary)},
        "start_time": {"type": "integer"},
        "end_time": {"type": "integer"},
        "description": TEXT,
        "tags": {"type": "array", "items": tag, **({} if goal.tag_vocabulary else {"maxItems": 0})},
        "target_id": TEXT,
    }
    return _object(fields, "name", "start_time", "end_time")


def _object(fields: Mapping[str, object], *required: str) -> JSON:
    return {"type": "object", "properties": dict(fields), "required": list(required), "additionalProperties": False}
