"""The goals of turns that go on in another run, in memory.

Rule: only a turn that waits for somebody is kept, for an hour and within bounds. What is forgotten is no longer asked
of the assistant.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic_core import to_json

from app.agents.shelf import Place, Shelf
from app.ports import GoalRecord, RunContext

LIFETIME = 3600.0
"""Seconds, as long as an approval waits."""

MAX_BYTES = 16_000_000
"""What the goals of all threads may take, as JSON. Beyond it the oldest are forgotten."""


@dataclass(frozen=True)
class _Turn:
    goals: Sequence[GoalRecord]

    @cached_property
    def size(self) -> int:
        return len(to_json(self.goals))


class GoalsInMemory:
    """Implements ``ports.GoalRecords`` for one process.

    Args:
        now: Unix seconds.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._turns = Shelf[_Turn]("goals", LIFETIME, MAX_BYTES)

    async def held(self, ctx: RunContext) -> Sequence[GoalRecord]:
        """The goals of the thread's turn."""
        return [record for turn in self._turns.of(_place(ctx)) for record in turn.goals]

    def hold(self, ctx: RunContext, goals: Sequence[GoalRecord]) -> None:
        """Keep them for the next run."""
        self._turns.put(_place(ctx), [_Turn(goals)] if goals else (), self._now())

    def record(self, ctx: RunContext, goals: Sequence[GoalRecord]) -> None:
        """Nobody asks for it here: the client has been told."""


def _place(ctx: RunContext) -> Place:
    return (0, ctx.caller.owner, ctx.thread_id)
