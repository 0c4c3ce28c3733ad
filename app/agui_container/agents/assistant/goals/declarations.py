"""Goals that a caller declares in ``forwardedProps.goals``.

Rule: an invalid goal is rejected before the model is called, with one sentence that names the field.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic_core import to_json

from agui_container.ports import Goal
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import read_forwarded_prop

FIELD = "goals"
MAX_GOALS = 16
"""Maximum number of goals of one turn. Each adds a tool to every prompt."""
MAX_DESCRIPTION = 2_000
"""Maximum characters of a goal's description."""
MAX_SCHEMAS = 20_000
"""Maximum bytes of all schemas of a turn as JSON. They are part of every prompt."""
MAX_PATTERNS = 16
"""Maximum number of patterns in all schemas of a turn. Compiling a short pattern can take 10 MB and 0.1 s."""


class GoalDeclaration(BaseModel):
    """One goal on the wire. The wire name of ``json_schema`` is ``schema``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,48}$")]
    json_schema: Annotated[dict[str, object], Field(alias="schema")]
    description: Annotated[str, Field(max_length=MAX_DESCRIPTION)] = ""


_GOALS: TypeAdapter[list[GoalDeclaration]] = TypeAdapter(Annotated[list[GoalDeclaration], Field(max_length=MAX_GOALS)])


def has_goals(props: object) -> bool:
    """Return True if the caller declares goals. An empty list is a declaration, too."""
    return isinstance(props, Mapping) and props.get(FIELD) is not None


def parse_goals(props: object) -> Sequence[Goal]:
    """Parse the goals in ``forwardedProps``. This may take a second, so it must run outside the event loop.

    Raises:
        AppError: VALIDATION_ERROR, naming the field.
    """
    from agui_container.agents.assistant.goals.schema_validation import count_patterns, schema_problem  # noqa: PLC0415 - the import takes 0.2 s

    goals: dict[str, Goal] = {}
    declarations = read_forwarded_prop(props, FIELD, _GOALS) or []
    if sum(len(to_json(each.json_schema)) for each in declarations) > MAX_SCHEMAS:
        message = f"forwardedProps.{FIELD}: the schemas have more than {MAX_SCHEMAS} bytes as JSON."
        raise AppError(ErrorCode.VALIDATION_ERROR, message)
    if sum(count_patterns(each.json_schema) for each in declarations) > MAX_PATTERNS:
        raise AppError(
            ErrorCode.VALIDATION_ERROR, f"forwardedProps.{FIELD}: the schemas have more than {MAX_PATTERNS} patterns."
        )
    for index, declaration in enumerate(declarations):
        path, name = f"forwardedProps.{FIELD}.{index}", declaration.type
        if name in goals:
            raise AppError(ErrorCode.VALIDATION_ERROR, f"{path}.type: another goal has the type '{name}'.")
        # A schema of any version is read as the version that tool schemas have.
        schema = {key: value for key, value in declaration.json_schema.items() if key != "$schema"}
        problem = schema_problem(schema)
        if problem is not None:
            raise AppError(ErrorCode.VALIDATION_ERROR, f"{path}.schema{problem}")
        goals[name] = Goal(name, schema, declaration.description)
    return list(goals.values())
