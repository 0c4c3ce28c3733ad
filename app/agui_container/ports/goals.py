"""Goals: what a caller wants a turn to bring, besides words.

Rule: a goal is pending until its data has been given, or its turn has ended without; then it is that for good. A turn
is the runs from one that declares goals to the one that ends with nothing left for somebody else to answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agui_container.ports.agent import RunContext
from agui_container.ports.records import GoalStatus

DECLARED, ACHIEVED, FAILED = "goals.declared", "goal.achieved", "goal.failed"
"""Names of the CUSTOM events that tell how goals stand."""


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal as it was declared: its type, which names it within a turn, and the JSON Schema of its data."""

    type: str
    schema: Mapping[str, object]
    description: str = ""


@dataclass(frozen=True, slots=True)
class GoalRecord:
    """A goal and what has become of it.

    Attributes:
        data: what it was achieved with; None unless it was.
        run_id, index: the run that declared it, and its place there.
    """

    goal: Goal
    status: GoalStatus = GoalStatus.PENDING
    data: Mapping[str, object] | None = None
    run_id: str = ""
    index: int = 0


class GoalRecords(Protocol):
    """Where the goals of turns are written down.

    ``held`` and ``hold`` wait for it, and raise ``AppError`` STORE_UNAVAILABLE. ``record`` does not: a run that was
    cancelled says how its goals stand when the thread's next run may have begun. ``stored_run_view`` waits and raises
    nothing.
    """

    async def load(self, ctx: RunContext) -> Sequence[GoalRecord]:
        """All goals of the turn that goes on with this run; none where no turn does."""

    async def carry_over(self, ctx: RunContext, goals: Sequence[GoalRecord]) -> None:
        """The turn goes on in the thread's next run, with these; with none it is this run's to end.

        The word of the thread's last run counts, whenever an earlier one says its own.
        """

    def record(self, ctx: RunContext, goals: Sequence[GoalRecord]) -> None:
        """How these goals stand: when they are declared, when one is achieved, and when the turn ends."""

    async def record_and_wait(self, ctx: RunContext, goals: Sequence[GoalRecord]) -> None:
        """As ``record``, and they can be read from now on: before the run's last event says that it is over."""


__all__ = ["Goal", "GoalRecord", "GoalRecords", "GoalStatus"]
