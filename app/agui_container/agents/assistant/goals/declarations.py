"""``forwardedProps.goals``: what a caller declares.

Rule: whatever is wrong with a goal is refused before the model is asked, in one sentence that names the field.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic_core import to_json

from agui_container.ports import Goal
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.forwarded_props import read_forwarded_prop

FIELD = "goals"
MAX_GOALS = 16
"""Goals of one turn. Each is a tool that the model is told of."""
MAX_DESCRIPTION = 2_000
MAX_SCHEMAS = 20_000
"""Bytes of all schemas of a turn as JSON. The model is told all of them, with every call."""
MAX_PATTERNS = 16
"""Patterns of all schemas of a turn. A few letters of one can take 10 MB, and a tenth of a second."""


class GoalDeclaration(BaseModel):
    """One goal on the wire; ``schema`` is there what ``json_schema`` is here."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,48}$")]
    json_schema: Annotated[dict[str, object], Field(alias="schema")]
    description: Annotated[str, Field(max_length=MAX_DESCRIPTION)] = ""


_GOALS: TypeAdapter[list[GoalDeclaration]] = TypeAdapter(Annotated[list[GoalDeclaration], Field(max_length=MAX_GOALS)])


def has_goals(props: object) -> bool:
    """Whether goals are declared, be it none at all."""
    return isinstance(props, Mapping) and props.get(FIELD) is not None


def parse_goals(props: object) -> Sequence[Goal]:
    """The goals in ``forwardedProps``. It may take a second: not for the event loop.

    Raises:
        AppError: VALIDATION_ERROR, naming the field.
    """
    from agui_container.agents.assistant.goals.schema_validation import count_patterns, schema_problem  # noqa: PLC0415 - a fifth of a second, for those who use it

    goals: dict[str, Goal] = {}
    listed = read_forwarded_prop(props, FIELD, _GOALS) or []
    if sum(len(to_json(given.json_schema)) for given in listed) > MAX_SCHEMAS:
        message = f"forwardedProps.{FIELD}: the schemas have more than {MAX_SCHEMAS} bytes as JSON."
        raise AppError(ErrorCode.VALIDATION_ERROR, message)
    if sum(count_patterns(given.json_schema) for given in listed) > MAX_PATTERNS:
        raise AppError(
            ErrorCode.VALIDATION_ERROR, f"forwardedProps.{FIELD}: the schemas have more than {MAX_PATTERNS} patterns."
        )
    for at, given in enumerate(listed):
        where = f"forwardedProps.{FIELD}.{at}"
        if given.type in goals:
            raise AppError(ErrorCode.VALIDATION_ERROR, f"{where}.type: another goal has the type '{given.type}'.")
        # Whatever version it names, it is read as the one that tools have.
        schema = {key: value for key, value in given.json_schema.items() if key != "$schema"}
        wrong = schema_problem(schema)
        if wrong is not None:
            raise AppError(ErrorCode.VALIDATION_ERROR, f"{where}.schema{wrong}")
        goals[given.type] = Goal(given.type, schema, given.description)
    return list(goals.values())
