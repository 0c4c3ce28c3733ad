"""Goals: data that a caller wants from a turn (a feature of AGUI Container, ``docs/goals.md`` there)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ag_ui.core import BaseEvent, CustomEvent
from pydantic import BaseModel

Schema = Mapping[str, object] | type[BaseModel]
"""A JSON Schema, or a model of pydantic."""


class GoalStatus(StrEnum):
    """State of a goal."""

    PENDING = "pending"
    ACHIEVED = "achieved"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Goal:
    """Data that the agent must give before its turn ends.

    Attributes:
        type: names the goal in its turn: 1 to 48 letters, digits, ``_`` and ``-``.
        schema: JSON Schema of the data, or a model of pydantic.
        description: describes the goal to the model.
    """

    type: str
    schema: Schema
    description: str | None = None

    @property
    def declaration(self) -> dict[str, object]:
        """The goal as the server reads it."""
        schema = self.schema.model_json_schema() if isinstance(self.schema, type) else self.schema
        declared: dict[str, object] = {"type": self.type, "schema": dict(schema)}
        return declared if self.description is None else {**declared, "description": self.description}


@dataclass(frozen=True, slots=True)
class GoalRecord:
    """A declared goal. ``data`` is the result of an achieved one."""

    type: str
    status: GoalStatus
    data: dict[str, object] | None = None


class Goals:
    """The goals of the last turn that declared some, as its events tell."""

    def __init__(self) -> None:
        self._records: dict[str, GoalRecord] = {}

    @property
    def records(self) -> list[GoalRecord]:
        """The goals, in the order of their declaration."""
        return list(self._records.values())

    @property
    def failed(self) -> list[str]:
        """Types of the goals that failed."""
        return [record.type for record in self._records.values() if record.status is GoalStatus.FAILED]

    def load(self, records: Iterable[Mapping[str, object]]) -> None:
        """Take the goals of a thread. The last one of a type counts."""
        self._records = {record.type: record for record in map(_record, records)}

    def apply(self, event: BaseEvent) -> None:
        """Change the goals as an event says."""
        if not isinstance(event, CustomEvent) or not isinstance(event.value, Mapping):
            return
        value = event.value
        if event.name == "goals.declared":
            known = self._records
            self._records = {}
            for declared in map(_record, value.get("goals", ())):
                before = known.get(declared.type)
                is_same = before is not None and before.status is declared.status
                self._records[declared.type] = before if is_same and before else declared
        elif event.name == "goal.achieved":
            self._set(GoalRecord(str(value.get("type")), GoalStatus.ACHIEVED, _object(value.get("data"))))
        elif event.name == "goal.failed":
            self._set(GoalRecord(str(value.get("type")), GoalStatus.FAILED))

    def clear(self) -> None:
        """Forget the goals, because a new turn begins."""
        self._records = {}

    def _set(self, record: GoalRecord) -> None:
        self._records[record.type] = record


def _record(fields: Mapping[str, object]) -> GoalRecord:
    return GoalRecord(str(fields.get("type")), GoalStatus(str(fields.get("status"))), _object(fields.get("data")))


def _object(value: object) -> dict[str, object] | None:
    return dict(value) if isinstance(value, Mapping) else None
