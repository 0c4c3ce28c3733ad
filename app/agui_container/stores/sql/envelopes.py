"""Appends of envelopes to a database, for one run and for all runs of a process in batches.

Rule: a replica writes only to runs whose row names it, and checks this in the same transaction. Appends that arrive during
a transaction form the next batch, whatever run they belong to, so many slow runs need few commits. A run that cannot be
written does not block the others.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import LargeBinary, bindparam, select, text, update
from sqlalchemy import insert as plain_insert
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection

from agui_container.ports.records import RunKey, RunRecord, RunStatus
from agui_container.ports.store import LeaseLost, StoreUnavailable
from agui_container.protocol.wire.envelope import Envelope
from agui_container.stores.page_tokens import unpersisted
from agui_container.stores.sql.database import Database
from agui_container.stores.sql.rows import RUN_FACTS, is_run, run_record
from agui_container.stores.sql.schema import ENVELOPES, RUNS, digest_of

MAX_RUNS, MAX_BYTES = 200, 4_000_000
"""Limits of one batch: runs, and bytes of event data. The request that exceeds the bytes is still included."""

OUTAGES = (OperationalError, PoolTimeout, OSError)
"""Causes that affect the whole database, so that no single request of the batch is to blame."""

logger = logging.getLogger(__name__)

RUNNING = RUNS.c.status == RunStatus.RUNNING

MINE = (
    update(RUNS)
    .where(RUNS.c.digest == bindparam("of_run"), RUNNING, RUNS.c.replica == bindparam("by"))
    .returning(RUNS.c.number)
)
ADVANCE = MINE.where(RUNS.c.last_seq == bindparam("follows")).values(last_seq=bindparam("last"))
"""Advances ``last_seq`` if the run belongs to the replica and has no gap. Built once, because every append uses it."""

ADVANCE_EACH = update(RUNS).where(RUNS.c.number == bindparam("of_run")).values(last_seq=bindparam("last"))

EACH_ENVELOPE = plain_insert(ENVELOPES)
ALL_ENVELOPES = text("""
    INSERT INTO envelopes (run, seq, type, data)
    SELECT run, seq, type, substring(:data, 1 + (sum(size) OVER (ORDER BY place) - size)::int, size)
    FROM unnest(
        string_to_array(:runs, ',')::bigint[], string_to_array(:seqs, ',')::int[],
        string_to_array(:types, ','), string_to_array(:sizes, ',')::int[]
    ) WITH ORDINALITY AS each(run, seq, type, size, place)
""").bindparams(bindparam("data", type_=LargeBinary))
"""Inserts any number of envelopes. Their data is one value that PostgreSQL splits, because psycopg writes arrays slowly."""


# --- one run ----------------------------------------------------------------------------------------------------------


async def held(connection: AsyncConnection, run: RunKey) -> RunRecord | None:
    """Lock a run until the end of the transaction. Return its record, or None if there is no such run."""
    row = (await connection.execute(select(*RUN_FACTS).where(is_run(run)).with_for_update())).first()
    return run_record(row) if row else None


async def write(
    connection: AsyncConnection, run: RunKey, replica: str, envelopes: Sequence[Envelope], **ending: object
) -> bool:
    """Append envelopes and set the columns in ``ending``. Return False, without a change, if that is not possible.

    The run must be active and belong to ``replica``, and the envelopes must follow the stored ones.
    """
    if not envelopes and not ending:
        return True
    where: dict[str, object] = {"of_run": digest_of(*run), "by": replica}
    if envelopes:
        mine = ADVANCE if not ending else ADVANCE.values(ending)
        where |= {"follows": envelopes[0].seq - 1, "last": envelopes[-1].seq}
    else:
        mine = MINE.values(ending)
    number: int | None = await connection.scalar(mine, where)
    if number is not None and envelopes:
        await insert(connection, [(number, envelope) for envelope in envelopes])
    return number is not None


async def insert(connection: AsyncConnection, rows: Sequence[tuple[int, Envelope]]) -> None:
    """Insert envelopes: on SQLite one row per execution of a prepared statement, on PostgreSQL all rows in one statement."""
    if connection.dialect.name == "sqlite":
        each = [{"run": run, "seq": e.seq, "type": e.type.value, "data": e.data} for run, e in rows]
        await connection.execute(EACH_ENVELOPE, each)
        return
    columns = {
        "runs": joined(run for run, _ in rows),
        "seqs": joined(envelope.seq for _, envelope in rows),
        "types": joined(envelope.type.value for _, envelope in rows),
        "sizes": joined(len(envelope.data) for _, envelope in rows),
    }
    await connection.execute(ALL_ENVELOPES, columns | {"data": b"".join(envelope.data for _, envelope in rows)})


def joined(values: Iterable[object]) -> str:
    """Return the values of one column as a string that PostgreSQL splits at the commas."""
    return ",".join(map(str, values))


# --- all runs of a process --------------------------------------------------------------------------------------------


class AppendRequest(NamedTuple):
    """Request to append envelopes of one run. ``done`` resolves with the outcome; ``size`` is in bytes."""

    run: RunKey
    replica: str
    envelopes: Sequence[Envelope]
    size: int
    done: asyncio.Future[None]


class AppendBatcher:
    """Queue of append requests of one process, written in batches."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[AppendRequest] = []
        self._apart: set[RunKey] = set()
        self._alone: set[RunKey] = set()
        self._working = False

    async def put(self, run: RunKey, replica: str, envelopes: Sequence[Envelope]) -> None:
        """Append envelopes to a run, and wait until they are stored.

        Raises:
            LeaseLost: The run is not active or belongs to another replica.
            ValueError: The envelopes leave a gap after the stored ones.
            StoreUnavailable: The database failed or did not answer in time.
        """
        if not envelopes:
            return
        size = sum(len(envelope.data) for envelope in envelopes)
        part = AppendRequest(run, replica, envelopes, size, asyncio.get_running_loop().create_future())
        part.done.add_done_callback(ignore_result)
        self._waiting.append(part)
        self._go_on()
        await self._database.with_timeout(part.done)

    def forget(self, run: RunKey) -> None:
        """Drop the state of a run that will get no more appends."""
        self._apart.discard(run)

    def _go_on(self) -> None:
        if not self._working:
            self._working = True
            self._database.begin(self._work())

    async def _work(self) -> None:
        try:
            while parts := self._next():
                await self._write(parts)
        finally:
            self._working = False

    def _next(self) -> Sequence[AppendRequest]:
        """Take the requests of the next transaction: at most one per run. An isolated run gets a transaction of its own."""
        chosen: dict[RunKey, AppendRequest] = {}
        left, size = [], 0
        for part in self._waiting:
            first = next(iter(chosen.values()), part)
            apart = chosen and not self._apart.isdisjoint((first.run, part.run))
            full = len(chosen) == MAX_RUNS or size > MAX_BYTES
            if full or apart or part.replica != first.replica or part.run in chosen or part.run in self._alone:
                left.append(part)
            else:
                chosen[part.run] = part
                size += part.size
        self._waiting = left
        return list(chosen.values())

    async def _write(self, parts: Sequence[AppendRequest]) -> None:
        if len(parts) == 1 and self._database.is_sqlite:  # no row locks on SQLite, so the batch query is not needed
            await self._by_itself(parts[0])
            return
        left = parts
        try:
            left = await self._together(parts)
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, OUTAGES):
                self._apart.update(part.run for part in parts)
            for part in parts:
                resolve(part, error)
            return
        except Exception:
            logger.exception("batched append failed, retrying one by one runs=%s", len(parts))
        for part in left:
            self._alone.add(part.run)
            self._database.begin(self._by_itself(part))

    async def _together(self, parts: Sequence[AppendRequest]) -> Sequence[AppendRequest]:
        """Append in one transaction every request that follows the stored envelopes. Return the other requests."""
        of_run = {digest_of(*part.run): part for part in parts}
        which = (RUNS.c.digest.in_(of_run), RUNNING, RUNS.c.replica == parts[0].replica)
        # Rows are locked in the same order as in ``renew``, because another order could cause a deadlock.
        mine = select(RUNS.c.number, RUNS.c.digest, RUNS.c.last_seq).where(*which).order_by(RUNS.c.number)
        async with self._database.writing() as connection:
            found = (await connection.execute(mine.with_for_update(skip_locked=True))).all()
            fit = {number: of_run.pop(name) for number, name, last in found if is_next(of_run[name], last)}
            if fit:
                await insert(connection, [(number, envelope) for number in fit for envelope in fit[number].envelopes])
                ends = [{"of_run": number, "last": part.envelopes[-1].seq} for number, part in fit.items()]
                await connection.execute(ADVANCE_EACH, ends)
        for part in fit.values():
            resolve(part)
        return list(of_run.values())

    async def _by_itself(self, part: AppendRequest) -> None:
        """Append one request in its own transaction, so that a lock on its row delays no other run."""
        try:
            async with self._database.writing() as connection:
                await append(connection, part)
        except Exception as error:  # noqa: BLE001 - passed to the waiting caller
            resolve(part, error)
        else:
            self._apart.discard(part.run)
            resolve(part)
        finally:
            self._alone.discard(part.run)
            self._go_on()


async def append(connection: AsyncConnection, part: AppendRequest) -> None:
    """Append the envelopes of one request that are not stored yet. Raises ``LeaseLost``, or ``ValueError`` for a gap."""
    run, replica, envelopes = part[:3]
    if await write(connection, run, replica, envelopes):
        return
    record = await held(connection, run)
    if record is None or not record.is_active or record.replica != replica:
        raise LeaseLost(run.run_id)
    await write(connection, run, replica, unpersisted(record, envelopes))


def is_next(part: AppendRequest, last_seq: int) -> bool:
    """True if the request directly follows ``last_seq``."""
    return part.envelopes[0].seq == last_seq + 1


def ignore_result(done: asyncio.Future[None]) -> None:
    """Mark the outcome as retrieved, because the caller may have been cancelled."""
    if not done.cancelled():
        done.exception()


def resolve(part: AppendRequest, error: Exception | None = None) -> None:
    """Set the outcome of a request, unless its caller was cancelled."""
    if part.done.done():
        return
    if error is None:
        part.done.set_result(None)
    else:
        part.done.set_exception(error)
