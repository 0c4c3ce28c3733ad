"""``forwardedProps.goals``: what a caller declares.

Rule: whatever is wrong with a goal is refused before the model is asked, in one sentence that names the field.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic_core import to_json

from app.core.errors import AppError, Code
from app.core.forwarded import forwarded
from app.ports import Goal

FIELD = "goals"
MAX_GOALS = 16
"""Goals of one turn. Each is a tool that the model is told of."""
MAX_DESCRIPTION = 2_000
MAX_SCHEMAS = 20_000
"""Bytes of all schemas of a turn as JSON. The model is told all of them, with every call."""
MAX_PATTERNS = 16
"""Patterns of all schemas of a turn. A few letters of one can take 10 MB, and a tenth of a second."""


class Declared(BaseModel):
    """One goal on the wire; ``schema`` is there what ``json_schema`` is here."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,48}$")]
    json_schema: Annotated[dict[str, object], Field(alias="schema")]
    description: Annotated[str, Field(max_length=MAX_DESCRIPTION)] = ""


_GOALS: TypeAdapter[list[Declared]] = TypeAdapter(Annotated[list[Declared], Field(max_length=MAX_GOALS)])


def has_goals(props: object) -> bool:
    """Whether goals are declared, be it none at all."""
    return isinstance(props, Mapping) and props.get(FIELD) is not None


def declared(props: object) -> Sequence[Goal]:
    """The goals in ``forwardedProps``. It may take a second: not for the event loop.

    Raises:
        AppError: VALIDATION_ERROR, naming the field.
    """
    from app.agents.goals.schema import patterns_in, problem  # noqa: PLC0415 - a fifth of a second, for those who use it

    goals: dict[str, Goal] = {}
    listed = forwarded(props, FIELD, _GOALS) or []
    if sum(len(to_json(given.json_schema)) for given in listed) > MAX_SCHEMAS:
        message = f"forwardedProps.{FIELD}: the schemas have more than {MAX_SCHEMAS} bytes as JSON."
        raise AppError(Code.VALIDATION_ERROR, message)
    if sum(patterns_in(given.json_schema) for given in listed) > MAX_PATTERNS:
        raise AppError(
            Code.VALIDATION_ERROR, f"forwardedProps.{FIELD}: the schemas have more than {MAX_PATTERNS} patterns."
        )
    for at, given in enumerate(listed):
        where = f"forwardedProps.{FIELD}.{at}"
        if given.type in goals:
            raise AppError(Code.VALIDATION_ERROR, f"{where}.type: another goal has the type '{given.type}'.")
        # Whatever version it names, it is read as the one that tools have.
        schema = {key: value for key, value in given.json_schema.items() if key != "$schema"}
        wrong = problem(schema)
        if wrong is not None:
            raise AppError(Code.VALIDATION_ERROR, f"{where}.schema{wrong}")
        goals[given.type] = Goal(given.type, schema, given.description)
    return list(goals.values())
