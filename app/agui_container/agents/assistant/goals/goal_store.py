"""The goals of turns, where a store keeps them: those of a turn that goes on, and how each of a thread's stands.

Rule: only a turn that waits for somebody is taken up again, within an hour. Each run writes its own word on that, once
it begins and once it ends, and the last run's word counts: so a run that is slow to take back what it said changes
nothing for the next one. How goals stand is written in the background, in any order: what has ended stays ended. A run
that ends by itself waits for it, so that whoever has seen its end reads in the thread what the events have said.
"""

import logging
import time
from collections.abc import Callable, Sequence
from functools import cache

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from agui_container.agents.assistant.interrupt_scope import scope_key, shield_from_run_cancel
from agui_container.ports import GoalRecord, GoalStatus, RunContext
from agui_container.ports.records import InterruptScope, PendingInterrupt, RunKey, StoredGoal
from agui_container.ports.store import GoalStore, InterruptStore, Store, StoreUnavailable, store_errors_as_app_errors
from agui_container.runtime.memory_interrupts import MemoryInterrupts

LIFETIME = 3600.0
"""Seconds, as long as an approval waits."""

logger = logging.getLogger(__name__)


class StoredGoalRecords:
    """Implements ``ports.GoalRecords``.

    Args:
        now: Unix seconds.
        interrupts: keeps the goals of turns that go on.
        goals: keeps how goals stand, for those who read the thread; None where nobody does.
    """

    def __init__(
        self,
        now: Callable[[], float] = time.time,
        interrupts: InterruptStore | None = None,
        goals: GoalStore | None = None,
    ) -> None:
        self._now = now
        self._interrupts = interrupts or MemoryInterrupts()
        self._goals = goals

    def kept_in(self, store: Store) -> "StoredGoalRecords":
        """The same, kept there."""
        return StoredGoalRecords(self._now, store.interrupts, store.goals)

    async def load(self, ctx: RunContext) -> Sequence[GoalRecord]:
        """The goals of the thread's turn."""
        with store_errors_as_app_errors():
            words = await self._interrupts.list_open(_scope(ctx), self._now())
        return _load_goals(words[-1].payload) if words else ()

    async def carry_over(self, ctx: RunContext, goals: Sequence[GoalRecord]) -> None:
        """Keep them for the next run."""
        word = PendingInterrupt(ctx.run_id, _adapter().dump_json(list(goals)), self._now() + LIFETIME)
        with store_errors_as_app_errors():
            await self._interrupts.put(_scope(ctx), [word])

    def record(self, ctx: RunContext, goals: Sequence[GoalRecord]) -> None:
        """Have it written down, whatever becomes of the run."""
        if self._goals is not None and goals:
            ctx.background(_write_goals(self._goals, ctx, goals, self._now()))

    async def record_and_wait(self, ctx: RunContext, goals: Sequence[GoalRecord]) -> None:
        """Have it written down, and wait for it."""
        if self._goals is not None and goals:
            await shield_from_run_cancel(_write_goals(self._goals, ctx, goals, self._now()), ctx)


async def _write_goals(kept: GoalStore, ctx: RunContext, goals: Sequence[GoalRecord], now: float) -> None:
    own = [
        StoredGoal(ctx.run_id, record.index, record.goal.type, to_json(record.goal.schema), now)
        for record in goals
        if record.run_id == ctx.run_id
    ]
    try:
        await kept.declare(_key(ctx, ctx.run_id), own)
        for record in goals:
            if record.status is not GoalStatus.PENDING:
                result = to_json(record.data) if record.data is not None else None
                await kept.conclude(_key(ctx, record.run_id), record.index, record.status, now, result=result)
    except StoreUnavailable:
        logger.warning("run=<%s> | how its goals stand is not written down", ctx.run_id, exc_info=True)


def _key(ctx: RunContext, run_id: str) -> RunKey:
    return RunKey(ctx.caller.owner, ctx.thread_id, run_id)


def _scope(ctx: RunContext) -> InterruptScope:
    return InterruptScope(-1, *scope_key(ctx))


# --- as JSON ----------------------------------------------------------------------------------------------------------


@cache
def _adapter() -> TypeAdapter[list[GoalRecord]]:
    """Built with the first goal: a start does not pay for it."""
    return TypeAdapter(list[GoalRecord])


def _load_goals(payload: bytes) -> Sequence[GoalRecord]:
    """None at all where another version of this server wrote them, and this one cannot read it."""
    try:
        return _adapter().validate_json(payload)
    except ValidationError as error:
        logger.warning("the goals of a turn cannot be read, and are left: %s", error.errors()[0]["loc"])
        return ()
