"""Goals of a session: results that the client wants from a turn, each delivered by a call of a tool.

Rules:

- For the agent, a goal is a tool of the client, ``achieve_TYPE``. This package answers its calls: the first call whose
  data match the goal's schema achieves it, and any other call gets an error. The schema of Roboto's own goals is that
  of Roboto's results, so that a client can build its typed result from the call.
- An agent that stops before all goals are achieved is asked for them, ``PROMPTS`` times per turn.
- The goals of a turn that are not achieved fail with its end: by an error, by a cancellation, after the last prompt, or
  with the next message of the user.
- Everything is derived from the thread's messages and the times in ``Notes.concluded``. So any process can continue a
  turn whose process has ended.

The functions are pure. ``next_step`` and ``answers_of`` may take a second, so they must run outside the event loop.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from ag_ui.core import Context, Message, Tool, ToolCall, ToolMessage, UserMessage
from msgspec import Struct, field
from pydantic import TypeAdapter, ValidationError

from agui_container.protocol.strict_json import parse_finite_json
from agui_container.protocols.roboto.records import (
    JSON,
    CreateEvents,
    DatasetSummary,
    DatasetTriage,
    Goal,
    Goals,
    MessageNotes,
    MessageRecord,
    Notes,
    date_of,
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

GOALS: TypeAdapter[list[Goal]] = TypeAdapter(Goals)

TEXT: JSON = {"type": "string"}


# --- goals as tools ---------------------------------------------------------------------------------------------------


class GoalTool(Struct, frozen=True):
    """A declared goal and the name of its tool. Two goals of one type have different tools."""

    name: str
    goal: Goal

    @property
    def spec(self) -> Tool:
        """The tool as the agent gets it."""
        description = f"{_describe(self.goal)} Before the end of your turn, call this tool once with these data."
        return Tool(name=self.name, description=description, parameters=schema_of(self.goal))


def goal_tools(goals: Iterable[Goal]) -> list[GoalTool]:
    """Return the tools of goals."""
    seen: Counter[str] = Counter()
    tools = []
    for goal in goals:
        seen[goal.goal_type] += 1
        number = seen[goal.goal_type]
        tools.append(GoalTool(f"achieve_{goal.goal_type}{'' if number == 1 else f'_{number}'}", goal))
    return tools


def goal_contexts(tools: Iterable[GoalTool]) -> list[Context]:
    """Return each goal as context of the run, because vocabularies exceed the length of a description."""
    return [
        Context(description=f"The goal of {it.name}", value=it.goal.model_dump_json(exclude_none=True)) for it in tools
    ]


def request_for(names: Iterable[str]) -> str:
    """Return the text that asks the agent to call these tools."""
    return f"Achieve the goals: {', '.join(names)}. Call each of these tools with the data that it describes."


def _data_error(goal: Goal, call: ToolCall) -> str | None:
    """Return the first error in the data of a call, or None if they match the goal's schema."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # noqa: PLC0415 - it takes 0.2 s

    if len(call.function.arguments) > MAX_DATA:
        return f"has more than {MAX_DATA} characters as JSON"
    data = arguments_of(call)
    if data is None:
        return "must be a JSON object"
    error = next(Draft202012Validator(schema_of(goal)).iter_errors(data), None)
    if error is None:
        return None
    path, text = ".".join(map(str, error.absolute_path)), str(error.message)
    text = text if len(text) <= MAX_ERROR else f"{text[: MAX_ERROR // 2]}…{text[-MAX_ERROR // 2 :]}"
    return f"'{path}': {text}" if path else text


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
    """Return the JSON Schema of a goal's data."""
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


# --- turns ------------------------------------------------------------------------------------------------------------


class GoalTurn(Struct):
    """A turn with goals: notes of the message that declares them, their tools, the calls of these, and all messages.

    ``results`` are those of all calls of the thread, by the id of the call.
    """

    notes: MessageNotes
    tools: Sequence[GoalTool]
    results: Mapping[str, ToolMessage]
    calls: list[ToolCall] = field(default_factory=list)
    prompts: int = 0
    messages: list[Message] = field(default_factory=list)

    def add(self, message: Message) -> None:
        """Add a message of the turn."""
        self.messages.append(message)
        if message.subagent_run_id is None:
            names = {tool.name for tool in self.tools}
            self.calls += [call for call in calls_of(message) if call.function.name in names]

    def achieved_at(self, call: ToolCall) -> float | None:
        """Return the time at which a call has achieved its goal, or None."""
        result = self.results.get(call.id)
        notes = MessageNotes.of(None if result is None else result.metadata)
        return (notes.created or 0.0) if notes.has_achieved else None

    @property
    def achieved(self) -> set[str]:
        """Names of the tools whose goals are achieved."""
        return {call.function.name for call in self.calls if self.achieved_at(call) is not None}

    @property
    def open_names(self) -> list[str]:
        """Names of the tools whose goals no call has achieved."""
        return [tool.name for tool in self.tools if tool.name not in self.achieved]

    def has_ended(self, notes: Notes) -> bool:
        """Return True if the turn's goals no longer wait. ``notes`` are the facts of the session."""
        return (self.notes.run_id or "") in notes.concluded


def turns(messages: Sequence[Message]) -> list[GoalTurn]:
    """Return the turns of a thread that have goals."""
    found: list[GoalTurn] = []
    results = {it.tool_call_id: it for it in messages if isinstance(it, ToolMessage)}
    turn: GoalTurn | None = None
    for message in messages:
        if isinstance(message, UserMessage):
            notes = MessageNotes.of(message.metadata)
            if notes.is_prompt and turn is not None:
                turn.prompts += 1
            else:
                goals = _declared(notes)
                turn = GoalTurn(notes, goal_tools(goals), results) if goals else None
                found += [turn] if turn is not None else []
        if turn is not None:
            turn.add(message)
    return found


def _declared(notes: MessageNotes) -> list[Goal]:
    """Return the goals of a message, or none if another client has written what cannot be read."""
    try:
        return GOALS.validate_python(notes.goals)
    except ValidationError:
        return []


def last_turn(messages: Sequence[Message]) -> GoalTurn | None:
    """Return the last turn of a thread, or None if it has no goals."""
    first = next((at for at in range(len(messages) - 1, -1, -1) if begins_turn(messages[at])), len(messages))
    return next(iter(turns(messages[first:])), None)


def begins_turn(message: Message) -> bool:
    """Return True if a message is one of the user."""
    return isinstance(message, UserMessage) and not MessageNotes.of(message.metadata).is_prompt


def calls_awaiting_client(messages: Sequence[Message]) -> Mapping[str, str]:
    """Return the names of the calls without a result since the last user message, by id."""
    return {call.id: call.function.name for call in unanswered_in_last_turn(messages)}


def arguments_of(call: ToolCall) -> JSON | None:
    """Return the arguments of a call, or None if they are no JSON object."""
    try:
        arguments = parse_finite_json(call.function.arguments)
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) else None


# --- between two runs of a turn ---------------------------------------------------------------------------------------


class Step(Struct, frozen=True):
    """What follows a run of a turn with goals: messages for the next run, or the end of the turn, or neither."""

    messages: Sequence[Message] = ()
    is_end: bool = False


def next_step(turn: GoalTurn, status: str, new_id: Callable[[], str], now: float) -> Step:
    """Return what follows the last run of a turn, which has ended with a status of AG-UI's views."""
    if status in {"error", "cancelled"}:
        return Step(is_end=True)
    answers = answers_of(turn, new_id, now)
    if status == "interrupted" or len(answers) < len(calls_awaiting_client(turn.messages)):
        return Step()
    if answers:
        return Step(is_end=True) if len(turn.calls) > MAX_CALLS else Step(answers)
    if not turn.open_names or turn.prompts == PROMPTS:
        return Step(is_end=True)
    notes = MessageNotes(created=now, is_prompt=True)
    return Step([UserMessage(id=new_id(), content=request_for(turn.open_names), metadata=notes.metadata())])


def answers_of(turn: GoalTurn, new_id: Callable[[], str], now: float) -> list[ToolMessage]:
    """Return the results of the calls of goals' tools that have none."""
    achieved, goals = turn.achieved, {tool.name: tool.goal for tool in turn.tools}
    waiting = calls_awaiting_client(turn.messages)
    messages = []
    for call in [it for it in turn.calls if it.id in waiting]:
        name = call.function.name
        error = "the goal is achieved already" if name in achieved else _data_error(goals[name], call)
        if error is None:
            achieved.add(name)
        text = "The goal is achieved." if error is None else f"{name}: {error}."
        metadata = MessageNotes(created=now, has_achieved=error is None).metadata()
        message = ToolMessage(id=new_id(), tool_call_id=call.id, content=text, metadata=metadata)
        messages.append(message if error is None else message.model_copy(update={"error": text}))
    return messages


# --- records ----------------------------------------------------------------------------------------------------------


def goal_records(messages: Sequence[Message], rows: Sequence[MessageRecord], notes: Notes) -> list[JSON]:
    """Return the goals of a session. ``rows`` are the messages of the session, and ``messages`` those of its thread."""
    places = {name: at for at, row in enumerate(rows) for name in row.ids}
    return [
        _record(turn, tool, places.get(turn.messages[0].id, 0), notes)
        for turn in turns(messages)
        for tool in turn.tools
    ]


def _record(turn: GoalTurn, tool: GoalTool, at: int, notes: Notes) -> JSON:
    calls = [it for it in turn.calls if it.function.name == tool.name]
    used = next((it for it in calls if turn.achieved_at(it) is not None), calls[-1] if calls else None)
    achieved = None if used is None else turn.achieved_at(used)
    concluded = notes.concluded.get(turn.notes.run_id or "") if achieved is None else achieved
    return {
        "goal_type": tool.goal.goal_type,
        "goal_data": tool.goal.model_dump(mode="json"),
        "status": "achieved" if achieved is not None else "pending" if concluded is None else "failed",
        "message_sequence_num": at,
        "created": date_of(turn.notes.created or 0),
        "concluded_at": date_of(concluded),
        "achieve_tool_use_id": None if used is None else used.id,
    }
