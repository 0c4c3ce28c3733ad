"""Goal records in a store: the goals that a turn carries over to its next run, and the status of a thread's goals.

Rules:
- Goals are carried over only while the turn waits for an answer, for at most an hour. Each run writes its own record
  under its run id, when it begins and when it ends. The record of the thread's last run counts, so a late write of an
  earlier run has no effect.
- The status of goals is written in the background in any order, because a goal that has ended never changes again.
- A run that ends by itself waits for the write, so that a client that has seen the end reads the same status.
"""

import logging
import time
from collections.abc import Callable, Sequence
from functools import cache, partial

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from agui_container.agents.approvals.interrupt_scope import scope_key, shield_from_run_cancel, wait_for_store
from agui_container.ports import GoalRecord, GoalStatus, RunContext
from agui_container.ports.records import InterruptScope, PendingInterrupt, RunKey, StoredGoal
from agui_container.ports.store import GoalStore, InterruptStore, Store, StoreUnavailable, store_errors_as_app_errors
from agui_container.runtime.log_values import format_fields
from agui_container.runtime.memory_interrupts import MemoryInterrupts

LIFETIME = 3600.0
"""Seconds for which goals are carried over. It equals the lifetime of an approval."""

logger = logging.getLogger(__name__)


class StoredGoalRecords:
    """Implements ``ports.GoalRecords``.

    Args:
        now: returns the time in Unix seconds.
        interrupts: stores the goals that are carried over; by default in memory.
        goals: stores the status of goals for readers of the thread; None to store no status.
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

    def with_store(self, store: Store) -> "StoredGoalRecords":
        """Return records with the same clock that are stored in ``store``."""
        return StoredGoalRecords(self._now, store.interrupts, store.goals)

    async def load(self, ctx: RunContext) -> Sequence[GoalRecord]:
        """Return the goals that the thread's last run carried over."""
        with store_errors_as_app_errors():
            records = await wait_for_store(lambda: self._interrupts.list_open(_scope(ctx), self._now()))
        return _load_goals(records[-1].payload) if records else ()

    async def carry_over(self, ctx: RunContext, goals: Sequence[GoalRecord]) -> None:
        """Store the goals for the thread's next run."""
        record = PendingInterrupt(ctx.run_id, _adapter().dump_json(list(goals)), self._now() + LIFETIME)
        with store_errors_as_app_errors():
            await wait_for_store(lambda: self._interrupts.put(_scope(ctx), [record]))

    def record(self, ctx: RunContext, goals: Sequence[GoalRecord]) -> None:
        """Store the status of the goals in the background. The write survives the end of the run."""
        if self._goals is not None and goals:
            ctx.background(_write_goals(self._goals, ctx, goals, self._now()))

    async def record_and_wait(self, ctx: RunContext, goals: Sequence[GoalRecord]) -> None:
        """Store the status of the goals and wait for the write."""
        if self._goals is not None and goals:
            await shield_from_run_cancel(_write_goals(self._goals, ctx, goals, self._now()), ctx)


async def _write_goals(store: GoalStore, ctx: RunContext, goals: Sequence[GoalRecord], now: float) -> None:
    own = [
        StoredGoal(ctx.run_id, record.index, record.goal.type, to_json(record.goal.schema), now)
        for record in goals
        if record.run_id == ctx.run_id
    ]
    try:
        await wait_for_store(lambda: store.declare(_key(ctx, ctx.run_id), own))
        for record in goals:
            if record.status is not GoalStatus.PENDING:
                key, result = _key(ctx, record.run_id), to_json(record.data) if record.data is not None else None
                await wait_for_store(partial(store.conclude, key, record.index, record.status, now, result=result))
    except StoreUnavailable:
        logger.warning("storing goals failed %s", format_fields({"run": ctx.run_id}), exc_info=True)


def _key(ctx: RunContext, run_id: str) -> RunKey:
    return RunKey(ctx.caller.owner, ctx.thread_id, run_id)


def _scope(ctx: RunContext) -> InterruptScope:
    return InterruptScope(-1, *scope_key(ctx))


# --- as JSON ----------------------------------------------------------------------------------------------------------


@cache
def _adapter() -> TypeAdapter[list[GoalRecord]]:
    """Return the JSON adapter. It is built with the first goal, so that the server starts faster."""
    return TypeAdapter(list[GoalRecord])


def _load_goals(payload: bytes) -> Sequence[GoalRecord]:
    """Parse stored goals. Return none if another version of the server wrote them in a form unknown to this one."""
    try:
        return _adapter().validate_json(payload)
    except ValidationError as error:
        logger.warning("stored goals unreadable, ignored %s", format_fields({"field": error.errors()[0]["loc"]}))
        return ()
