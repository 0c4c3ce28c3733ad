"""Goals in a database. A goal that changes is a change of its thread."""

from collections.abc import Sequence

from sqlalchemy import select, update

from app.ports.conversation import GoalStatus, StoredGoal
from app.ports.records import RunKey
from app.stores.sql.database import Database, whole
from app.stores.sql.rows import insert, is_run, locked, touch
from app.stores.sql.schema import GOALS, RUNS, THREADS


class SqlGoals:
    """``Goals`` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @whole
    async def declare(self, run: RunKey, goals: Sequence[StoredGoal]) -> None:
        """Store the goals of a run."""
        async with self._database.writing() as connection:
            thread = await locked(connection, run.thread)
            number = await connection.scalar(select(RUNS.c.number).where(is_run(run)))
            if thread is None or number is None or not goals:
                return
            rows = [
                {
                    "run": number,
                    "place": goal.index,
                    "type": goal.type,
                    "schema": goal.schema,
                    "status": goal.status,
                    "result": goal.result,
                    "created_at": goal.created_at,
                    "concluded_at": goal.concluded_at,
                }
                for goal in goals
            ]
            await connection.execute(insert(connection.dialect.name, GOALS).on_conflict_do_nothing(), rows)
            await touch(connection, thread, goals_revision=THREADS.c.revision + 1)

    @whole
    async def conclude(
        self, run: RunKey, index: int, status: GoalStatus, now: float, *, result: bytes | None = None
    ) -> None:
        """Give a goal its end, if it is pending."""
        async with self._database.writing() as connection:
            thread = await locked(connection, run.thread)
            number = select(RUNS.c.number).where(is_run(run)).scalar_subquery()
            pending = update(GOALS).where(GOALS.c.run == number, GOALS.c.place == index, GOALS.c.status == "pending")
            ended = await connection.execute(pending.values(status=status, result=result, concluded_at=now))
            if thread is not None and ended.rowcount:
                await touch(connection, thread, goals_revision=THREADS.c.revision + 1)
