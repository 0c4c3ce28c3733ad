"""Goals: structured results that a caller requests from a turn.

Rule: a pending goal is achieved when its data is stored, and fails when its turn ends without data. Both are final. A
turn begins with the run that declares goals and ends with the first run that leaves no interrupt and no open tool call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agui_container.ports.agent import RunContext
from agui_container.ports.records import GoalStatus

DECLARED, ACHIEVED, FAILED = "goals.declared", "goal.achieved", "goal.failed"
"""Names of the CUSTOM events that report the status of goals."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A declared goal. ``type`` is unique within a turn. ``schema`` is the JSON Schema of the goal's data."""

    type: str
    schema: Mapping[str, object]
    description: str = ""


@dataclass(frozen=True, slots=True)
class GoalRecord:
    """A goal and its status.

    Attributes:
        data: data of an achieved goal, else None.
        run_id: id of the run that declared the goal.
        index: position among the goals of that run.
    """

    goal: Goal
    status: GoalStatus = GoalStatus.PENDING
    data: Mapping[str, object] | None = None
    run_id: str = ""
    index: int = 0


class GoalRecords(Protocol):
    """Storage of the goals of turns.

    ``load`` and ``carry_over`` wait for the store and raise ``AppError`` STORE_UNAVAILABLE. ``record`` does not wait,
    because a cancelled run records its goals while the thread's next run may have begun already. ``record_and_wait``
    waits and does not raise.
    """

    async def load(self, ctx: RunContext) -> Sequence[GoalRecord]:
        """Return all goals of the turn that this run continues. The result is empty if it continues no turn."""

    async def carry_over(self, ctx: RunContext, goals: Sequence[GoalRecord]) -> None:
        """Store the goals with which the thread's next run continues the turn. Without goals the turn ends here.

        The call of the thread's latest run wins over calls of earlier runs, in any order of arrival.
        """

    def record(self, ctx: RunContext, goals: Sequence[GoalRecord]) -> None:
        """Record the status of goals: when they are declared, when one is achieved, and when the turn ends."""

    async def record_and_wait(self, ctx: RunContext, goals: Sequence[GoalRecord]) -> None:
        """Record the status of goals and wait until it can be read. Called before the run's terminal event."""


__all__ = ["Goal", "GoalRecord", "GoalRecords", "GoalStatus"]
