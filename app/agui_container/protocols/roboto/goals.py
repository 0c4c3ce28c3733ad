"""Goals of a session: results that the client wants from a turn, each delivered by a call of a tool.

Rules:

- For the agent, a goal is a tool of the client, ``achieve_TYPE``. This package answers its calls: the first call whose
  data match the goal's schema achieves it, and any other call gets an error. The schema of Roboto's own goals is that
  of Roboto's results, so that a client can build its typed result from the call.
- An agent that stops before all goals are achieved is asked for them, ``PROMPTS`` times per turn.
- The goals of a turn that are not achieved fail with its end: by an error, by a cancellation, after the last prompt, or
  with the next message of the user.
- A goal is a note of the message that declares it, so any process can continue a turn whose process has ended.

The functions are pure. ``next_step`` and ``answer_calls`` may take a second, so they must run outside the event loop.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import msgspec
from ag_ui.core import Context, Message, Tool, ToolCall, ToolMessage, UserMessage
from msgspec import Struct
from msgspec.structs import replace

from agui_container.ports.records import RunStatus, ThreadNote
from agui_container.protocol.strict_json import parse_object
from agui_container.protocols.roboto.requests import (
    GOAL,
    JSON,
    CreateEvents,
    DatasetSummary,
    DatasetTriage,
    Goal,
    MessageFacts,
)
from agui_core.turns import calls_of, unanswered_in_last_turn

PROMPTS = 3
"""Maximum number of prompts for goals per turn."""
MAX_CALLS = 16
"""Maximum number of calls of goals' tools per turn that are answered."""
MAX_DATA = 100_000
"""Maximum characters of a goal's data as JSON."""
MAX_ERROR = 300
"""Maximum characters of the text of an error for the agent."""

TEXT: JSON = {"type": "string"}


class DeclaredGoal(Struct, frozen=True):
    """A goal of a session.

    Attributes:
        tool: name of its tool. Two goals of one type have different tools.
        message_id: message that declares the goal, which begins the turn.
        call_id: the call that has achieved the goal, or else the last one that has failed to.
        created, concluded_at: Unix seconds.
    """

    goal: Goal
    tool: str
    message_id: str
    created: float
    status: Literal["pending", "achieved", "failed"] = "pending"
    call_id: str | None = None
    concluded_at: float | None = None

    @property
    def spec(self) -> Tool:
        """The tool as the agent gets it."""
        description = f"{_describe(self.goal)} Before the end of your turn, call this tool once with these data."
        return Tool(name=self.tool, description=description, parameters=schema_of(self.goal))

    @property
    def context(self) -> Context:
        """The goal as context of the run, because vocabularies exceed the length of a description."""
        return Context(description=f"The goal of {self.tool}", value=msgspec.json.encode(self.goal).decode())

    @property
    def note(self) -> ThreadNote:
        name = f"{self.message_id}:{self.tool}"
        return ThreadNote(GOAL, name, msgspec.json.encode(self), message_id=self.message_id)


def declare(goals: Iterable[Goal], message_id: str, now: float) -> list[DeclaredGoal]:
    seen: Counter[str] = Counter()
    declared = []
    for goal in goals:
        kind = str(type(goal).__struct_config__.tag)
        seen[kind] += 1
        number = "" if seen[kind] == 1 else f"_{seen[kind]}"
        declared.append(DeclaredGoal(goal, f"achieve_{kind}{number}", message_id, now))
    return declared


def goals_in(notes: Iterable[ThreadNote]) -> list[DeclaredGoal]:
    return [msgspec.json.decode(note.data, type=DeclaredGoal) for note in notes if note.kind == GOAL]


def conclude(goals: Iterable[DeclaredGoal], now: float) -> list[DeclaredGoal]:
    """Return those goals that fail, because their turn has ended before they were achieved."""
    return [fail(goal, now) for goal in goals if goal.status == "pending"]


def fail(goal: DeclaredGoal, now: float) -> DeclaredGoal:
    return replace(goal, status="failed", concluded_at=now)


def request_for(names: Iterable[str]) -> str:
    """Return the text that asks the agent to call these tools."""
    return f"Achieve the goals: {', '.join(names)}. Call each of these tools with the data that it describes."


# --- between two runs of a turn ---------------------------------------------------------------------------------------


class Step(Struct, frozen=True):
    """What follows a run of a turn with goals: goals that change, and messages for the next run if there is one."""

    changed: Sequence[DeclaredGoal] = ()
    messages: Sequence[Message] = ()


def begins_turn(message: Message) -> bool:
    return isinstance(message, UserMessage) and not MessageFacts.of(message.metadata).is_prompt


def last_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages of a thread from the user's last one on."""
    first = next((at for at in range(len(messages) - 1, -1, -1) if begins_turn(messages[at])), len(messages))
    return messages[first:]


def goals_of(turn: Sequence[Message], goals: Iterable[DeclaredGoal]) -> list[DeclaredGoal]:
    return [goal for goal in goals if goal.message_id == turn[0].id] if turn else []


def next_step(
    goals: Sequence[DeclaredGoal], turn: Sequence[Message], status: RunStatus, new_id: Callable[[], str], now: float
) -> Step:
    """Return what follows the last run of a thread. ``goals`` are those of its session, ``turn`` is the last turn."""
    current = goals_of(turn, goals)
    if not current or status in {RunStatus.ERROR, RunStatus.CANCELLED}:
        return Step(conclude(goals, now))
    step = answer_calls(current, turn, new_id, now)
    if status is RunStatus.INTERRUPTED or len(step.messages) < len(unanswered_in_last_turn(turn)):
        return Step()
    if step.messages:
        tools = {goal.tool for goal in current}
        calls = [call for message in turn for call in calls_of(message) if call.function.name in tools]
        return Step(conclude(goals, now)) if len(calls) > MAX_CALLS else step
    pending = [goal.tool for goal in current if goal.status == "pending"]
    prompts = [message for message in turn[1:] if isinstance(message, UserMessage)]
    if not pending or len(prompts) == PROMPTS:
        return Step(conclude(goals, now))
    facts = MessageFacts(created=now, is_prompt=True)
    return Step(messages=[UserMessage(id=new_id(), content=request_for(pending), metadata=facts.metadata())])


def answer_calls(goals: Iterable[DeclaredGoal], turn: Sequence[Message], new_id: Callable[[], str], now: float) -> Step:
    """Return the results of the calls of goals' tools that have none, and the goals that the calls change."""
    by_tool, changed = {goal.tool: goal for goal in goals}, dict[str, DeclaredGoal]()
    messages = []
    for call in unanswered_in_last_turn(turn):
        name = call.function.name
        if (goal := by_tool.get(name)) is None:
            continue
        is_done = goal.status == "achieved" and goal.call_id != call.id
        error = "the goal is achieved already" if is_done else _data_error(goal.goal, call)
        if not is_done:
            ending = {"status": "achieved", "concluded_at": now} if error is None else {}
            by_tool[name] = changed[name] = replace(goal, call_id=call.id, **ending)
        text = "The goal is achieved." if error is None else f"{name}: {error}."
        refusal = None if error is None else text
        messages.append(ToolMessage(id=new_id(), tool_call_id=call.id, content=text, error=refusal))
    return Step(list(changed.values()), messages)


def _data_error(goal: Goal, call: ToolCall) -> str | None:
    """Return the first error in the data of a call, or None if they match the goal's schema."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # noqa: PLC0415 - it takes 0.2 s

    if len(call.function.arguments) > MAX_DATA:
        return f"has more than {MAX_DATA} characters as JSON"
    data = parse_object(call.function.arguments)
    if data is None:
        return "must be a JSON object"
    error = next(Draft202012Validator(schema_of(goal)).iter_errors(data), None)
    if error is None:
        return None
    path, text = ".".join(map(str, error.absolute_path)), str(error.message)
    text = text if len(text) <= MAX_ERROR else f"{text[: MAX_ERROR // 2]}…{text[-MAX_ERROR // 2 :]}"
    return f"'{path}': {text}" if path else text


# --- data of goals ----------------------------------------------------------------------------------------------------


def _describe(goal: Goal) -> str:
    match goal:
        case DatasetSummary():
            return f"Summarise the dataset {goal.dataset_id}. The context has the format."
        case DatasetTriage():
            labels = "with one decision for each label and each label once. The context has them."
            return f"Decide for each label whether it applies to the dataset {goal.dataset_id}, {labels}"
        case CreateEvents():
            return f"Find events in the dataset {goal.dataset_id}, in nanoseconds. The context has the vocabulary."


def schema_of(goal: Goal) -> JSON:
    match goal:
        case DatasetSummary():
            return _object({"summary": TEXT}, "summary")
        case DatasetTriage():
            labels = list(goal.label_vocabulary)
            fields: JSON = {"label": {"enum": labels, **TEXT}, "applies": {"type": "boolean"}, "justification": TEXT}
            fields["confidence"] = {"type": "number", "minimum": 0, "maximum": 1}
            decisions: JSON = {"type": "array", "minItems": len(labels), "maxItems": len(labels)}
            decisions["items"] = _object(fields, *fields)
            decisions["allOf"] = [{"contains": {"properties": {"label": {"const": it}}}} for it in labels]
            return _object({"label_decisions": decisions}, "label_decisions")
        case CreateEvents():
            return _object({"events": {"type": "array", "items": _event(goal)}}, "events")


def _event(goal: CreateEvents) -> JSON:
    tags: JSON = {"type": "array", "items": {"enum": [*goal.tag_vocabulary], **TEXT}}
    fields: JSON = {
        "name": {"enum": [*goal.event_vocabulary], **TEXT},
        "start_time": {"type": "integer"},
        "end_time": {"type": "integer"},
        "description": TEXT,
        "tags": tags if goal.tag_vocabulary else {"type": "array", "items": TEXT, "maxItems": 0},
        "target_id": TEXT,
    }
    return _object(fields, "name", "start_time", "end_time")


def _object(fields: Mapping[str, object], *required: str) -> JSON:
    return {"type": "object", "properties": dict(fields), "required": list(required), "additionalProperties": False}
