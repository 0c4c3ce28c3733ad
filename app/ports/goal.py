"""Goals: what a caller wants a turn to bring, besides words.

Rule: a goal is pending until its data has been given, or its turn has ended without; then it is that for good. A turn
is the runs from one that declares goals to the one that ends with nothing left for somebody else to answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from app.ports.run import RunContext


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal as it was declared: its type, which names it within a turn, and the JSON Schema of its data."""

    type: str
    schema: Mapping[str, object]
    description: str = ""


class GoalStatus(StrEnum):
    """Where a goal stands."""

    PENDING = "pending"
    ACHIEVED = "achieved"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class GoalRecord:
    """A goal and what has become of it; only one that is achieved has data."""

    goal: Goal
    status: GoalStatus = GoalStatus.PENDING
    data: Mapping[str, object] | None = None


class GoalRecords(Protocol):
    """Where the goals of turns are written down.

    Only ``held`` may wait: a store that has to wait takes note of the others and writes later. A run that was
    cancelled may still say how its goals stand when the thread's next run has begun.
    """

    async def held(self, ctx: RunContext) -> Sequence[GoalRecord]:
        """All goals of the turn that goes on with this run; none where no turn does."""

    def hold(self, ctx: RunContext, goals: Sequence[GoalRecord]) -> None:
        """The turn goes on in the thread's next run, with these; with none it is this run's to end."""

    def record(self, ctx: RunContext, goals: Sequence[GoalRecord]) -> None:
        """How the goals of this run stand: when they are declared, when one is achieved, and when the turn ends."""
