"""What waits for an answer, in a database.

Rule: an answer is taken by one conditional UPDATE, so that of several one counts.
"""

from collections.abc import Sequence
from functools import cache

from sqlalchemy import ColumnElement, Insert, and_, delete, select, update

from agui_container.ports.records import InterruptScope, PendingInterrupt
from agui_container.stores.sql.database import Database, uncancellable
from agui_container.stores.sql.rows import insert
from agui_container.stores.sql.schema import INTERRUPTS, digest_of

FACTS = tuple(INTERRUPTS.c[name] for name in ("interrupt_id", "payload", "until", "settled"))
"""The columns of a ``Held``."""


class SqlInterrupts:
    """``InterruptStore`` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @uncancellable
    async def put(self, place: InterruptScope, held: Sequence[PendingInterrupt]) -> None:
        """Store these, each in place of the one with its id."""
        rows = [
            {
                "thread": digest_of(*place.thread),
                "depth": place.depth,
                "part": place.part,
                "digest": _digest(place, it.id),
                "interrupt_id": it.id,
                "payload": it.payload,
                "until": it.until,
                "settled": it.settled,
            }
            for it in held
        ]
        if not rows:
            return
        async with self._database.writing() as connection:
            await connection.execute(_changing(connection.dialect.name), rows)

    @uncancellable
    async def list_open(self, place: InterruptScope, now: float) -> Sequence[PendingInterrupt]:
        """What has not expired, in the order in which it was first held."""
        wanted = select(*FACTS).where(_is_at(place), INTERRUPTS.c.until > now).order_by(INTERRUPTS.c.number)
        async with self._database.reading() as connection:
            return [PendingInterrupt(*row) for row in await connection.execute(wanted)]

    @uncancellable
    async def settle(self, place: InterruptScope, id: str, payload: bytes, until: float, now: float) -> bool:  # noqa: A002 - as in the port
        """Settle what is open and has not expired."""
        is_open = and_(INTERRUPTS.c.settled.is_(False), INTERRUPTS.c.until > now)
        taken = update(INTERRUPTS).where(_is_at(place), INTERRUPTS.c.digest == _digest(place, id), is_open)
        async with self._database.writing() as connection:
            done = await connection.execute(taken.values(settled=True, payload=payload, until=until))
            return done.rowcount == 1

    @uncancellable
    async def expire(self, now: float) -> None:
        """Remove what has expired."""
        async with self._database.writing() as connection:
            await connection.execute(delete(INTERRUPTS).where(INTERRUPTS.c.until <= now))


@cache
def _changing(dialect: str) -> Insert:
    """Puts interrupts in, or what is new of them. Made once: ``excluded`` is a copy of the table."""
    new = insert(dialect, INTERRUPTS)
    changed = {name: new.excluded[name] for name in ("payload", "until", "settled")}
    return new.on_conflict_do_update(index_elements=["thread", "depth", "digest"], set_=changed)


def _is_at(place: InterruptScope) -> ColumnElement[bool]:
    thread = and_(INTERRUPTS.c.thread == digest_of(*place.thread), INTERRUPTS.c.depth == place.depth)
    return and_(thread, INTERRUPTS.c.part == place.part)


def _digest(place: InterruptScope, name: str) -> bytes:
    """What is unique on a thread and at a depth: parts use the same ids."""
    return digest_of(place.part, name) if place.part else digest_of(name)
