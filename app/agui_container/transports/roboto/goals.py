"""Roboto's goals as goals of AG-UI.

Rule: pure functions. The schema of a goal's data is that of Roboto's own result, so that a client can build its typed
result from the call that achieved the goal.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from ag_ui.core import Context

from agui_container.transports.roboto.requests import CreateEvents, DatasetSummary, DatasetTriage, GenericGoal, Goal

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


def contexts(goals: Sequence[Goal]) -> list[Context]:
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
            return f"Decide for each label whether it applies to the dataset {goal.dataset_id}. The context has them."
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
            return _object({"label_decisions": {"type": "array", "items": _decision(goal)}}, "label_decisions")
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
