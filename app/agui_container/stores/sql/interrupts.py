"""Pending interrupts in a database.

Rule: one conditional UPDATE settles an interrupt, so only one of several answers succeeds.
"""

from collections.abc import Sequence
from functools import cache

from sqlalchemy import ColumnElement, Insert, and_, delete, select, update

from agui_container.ports.records import InterruptScope, PendingInterrupt
from agui_container.stores.sql.database import Database, uncancellable
from agui_container.stores.sql.rows import insert
from agui_container.stores.sql.schema import INTERRUPTS, digest_of

COLUMNS = tuple(INTERRUPTS.c[name] for name in ("interrupt_id", "payload", "until", "settled"))
"""Columns of a ``PendingInterrupt``."""


class SqlInterrupts:
    """``InterruptStore`` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @uncancellable
    async def put(self, scope: InterruptScope, interrupts: Sequence[PendingInterrupt]) -> None:
        """Store interrupts. Each replaces an earlier one with the same id."""
        rows = [
            {
                "thread": digest_of(*scope.thread),
                "depth": scope.depth,
                "part": scope.part,
                "digest": _digest(scope, interrupt.id),
                "interrupt_id": interrupt.id,
                "payload": interrupt.payload,
                "until": interrupt.until,
                "settled": interrupt.is_settled,
            }
            for interrupt in interrupts
        ]
        if not rows:
            return
        async with self._database.write_transaction() as connection:
            await connection.execute(_upsert(connection.dialect.name), rows)

    @uncancellable
    async def list_open(self, scope: InterruptScope, now: float) -> Sequence[PendingInterrupt]:
        """List the interrupts that have not expired, in the order in which they were first stored."""
        query = select(*COLUMNS).where(_in_scope(scope), INTERRUPTS.c.until > now).order_by(INTERRUPTS.c.number)
        async with self._database.read_transaction() as connection:
            return [PendingInterrupt(*row) for row in await connection.execute(query)]

    @uncancellable
    async def settle(self, scope: InterruptScope, id: str, payload: bytes, until: float, now: float) -> bool:  # noqa: A002 - as in the port
        """Settle an interrupt that is open and has not expired. Return True if this call settled it."""
        is_open = and_(INTERRUPTS.c.settled.is_(False), INTERRUPTS.c.until > now)
        statement = update(INTERRUPTS).where(_in_scope(scope), INTERRUPTS.c.digest == _digest(scope, id), is_open)
        async with self._database.write_transaction() as connection:
            result = await connection.execute(statement.values(settled=True, payload=payload, until=until))
            return result.rowcount == 1

    @uncancellable
    async def expire(self, now: float) -> None:
        """Delete expired interrupts."""
        async with self._database.write_transaction() as connection:
            await connection.execute(delete(INTERRUPTS).where(INTERRUPTS.c.until <= now))


@cache
def _upsert(dialect: str) -> Insert:
    """Return the upsert of interrupts. It is built once, because ``excluded`` copies the table."""
    new = insert(dialect, INTERRUPTS)
    changed = {name: new.excluded[name] for name in ("payload", "until", "settled")}
    return new.on_conflict_do_update(index_elements=["thread", "depth", "digest"], set_=changed)


def _in_scope(scope: InterruptScope) -> ColumnElement[bool]:
    thread = and_(INTERRUPTS.c.thread == digest_of(*scope.thread), INTERRUPTS.c.depth == scope.depth)
    return and_(thread, INTERRUPTS.c.part == scope.part)


def _digest(scope: InterruptScope, name: str) -> bytes:
    """Return the digest of an interrupt id, unique per thread and depth.

    It includes the part, because parts reuse ids.
    """
    return digest_of(scope.part, name) if scope.part else digest_of(name)
