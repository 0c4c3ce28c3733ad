"""Appends of envelopes to a database, for one run and for all runs of a process in batches.

Rule: a replica writes only to runs whose row names it, and checks this in the same transaction. Appends that arrive
during a transaction form the next batch, whatever run they belong to, so many slow runs need few commits. A run that
cannot be written does not block the others.
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

from agui_container.log_values import format_fields
from agui_container.ports.records import RunKey, RunRecord
from agui_container.ports.store import LeaseLost, StoreUnavailable
from agui_container.protocol.wire.envelope import Envelope
from agui_container.stores.page_tokens import unpersisted
from agui_container.stores.sql.database import Database, mark_retrieved
from agui_container.stores.sql.rows import IS_OPEN, RUN_FACTS, is_run, run_record
from agui_container.stores.sql.schema import ENVELOPES, RUNS, digest_of

MAX_RUNS, MAX_BYTES = 200, 4_000_000
"""Limits of one batch: runs, and bytes of event data. The request that exceeds the bytes is still included."""

OUTAGES = (OperationalError, PoolTimeout, OSError)
"""Causes that affect the whole database, so that no single request of the batch is to blame."""

logger = logging.getLogger(__name__)

OWN_RUN = (
    update(RUNS)
    .where(RUNS.c.digest == bindparam("of_run"), IS_OPEN, RUNS.c.replica == bindparam("by"))
    .returning(RUNS.c.number)
)
ADVANCE = OWN_RUN.where(RUNS.c.last_seq == bindparam("follows")).values(last_seq=bindparam("last"))
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
"""Inserts any number of envelopes. Their data is one value that PostgreSQL splits, because psycopg writes arrays
slowly."""


# --- one run ----------------------------------------------------------------------------------------------------------


async def lock_run(connection: AsyncConnection, run: RunKey) -> RunRecord | None:
    """Lock a run until the end of the transaction. Return its record, or None if there is no such run."""
    row = (await connection.execute(select(*RUN_FACTS).where(is_run(run)).with_for_update())).first()
    return run_record(row) if row else None


async def write_envelopes(
    connection: AsyncConnection, run: RunKey, replica: str, envelopes: Sequence[Envelope], **ending: object
) -> bool:
    """Append envelopes and set the columns in ``ending``. Return False, without a change, if that is not possible.

    The run must be open and belong to ``replica``, and the envelopes must follow the stored ones.
    """
    if not envelopes and not ending:
        return True
    parameters: dict[str, object] = {"of_run": digest_of(*run), "by": replica}
    if envelopes:
        statement = ADVANCE if not ending else ADVANCE.values(ending)
        parameters |= {"follows": envelopes[0].seq - 1, "last": envelopes[-1].seq}
    else:
        statement = OWN_RUN.values(ending)
    number: int | None = await connection.scalar(statement, parameters)
    if number is not None and envelopes:
        await insert_envelopes(connection, [(number, envelope) for envelope in envelopes])
    return number is not None


async def insert_envelopes(connection: AsyncConnection, rows: Sequence[tuple[int, Envelope]]) -> None:
    """Insert envelopes. SQLite runs a prepared statement per row, PostgreSQL one statement for all rows."""
    if connection.dialect.name == "sqlite":
        each = [{"run": run, "seq": e.seq, "type": e.type.value, "data": e.data} for run, e in rows]
        await connection.execute(EACH_ENVELOPE, each)
        return
    columns = {
        "runs": join_column(run for run, _ in rows),
        "seqs": join_column(envelope.seq for _, envelope in rows),
        "types": join_column(envelope.type.value for _, envelope in rows),
        "sizes": join_column(len(envelope.data) for _, envelope in rows),
    }
    await connection.execute(ALL_ENVELOPES, columns | {"data": b"".join(envelope.data for _, envelope in rows)})


def join_column(values: Iterable[object]) -> str:
    """Return the values of one column as a string that PostgreSQL splits at the commas."""
    return ",".join(map(str, values))


# --- batches of all runs ----------------------------------------------------------------------------------------------


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
        self._queue: list[AppendRequest] = []
        self._detached: set[RunKey] = set()
        self._is_working = False

    async def put(self, run: RunKey, replica: str, envelopes: Sequence[Envelope]) -> None:
        """Append envelopes to a run, and wait until they are stored.

        Raises:
            LeaseLost: The run is not open or belongs to another replica.
            ValueError: The envelopes leave a gap after the stored ones.
            StoreUnavailable: The database failed or did not answer in time.
        """
        if not envelopes:
            return
        size = sum(len(envelope.data) for envelope in envelopes)
        request = AppendRequest(run, replica, envelopes, size, asyncio.get_running_loop().create_future())
        request.done.add_done_callback(mark_retrieved)
        self._queue.append(request)
        self._start_worker()
        await self._database.with_timeout(request.done)

    def _start_worker(self) -> None:
        if not self._is_working:
            self._is_working = True
            self._database.start_task(self._drain_queue())

    async def _drain_queue(self) -> None:
        try:
            while batch := self._next_batch():
                await self._write_batch(batch)
        finally:
            self._is_working = False

    def _next_batch(self) -> Sequence[AppendRequest]:
        """Take the requests of the next transaction: at most one per run."""
        batch: dict[RunKey, AppendRequest] = {}
        remaining, size = [], 0
        for request in self._queue:
            first = next(iter(batch.values()), request)
            is_full = len(batch) == MAX_RUNS or size > MAX_BYTES
            if is_full or request.replica != first.replica or request.run in batch or request.run in self._detached:
                remaining.append(request)
            else:
                batch[request.run] = request
                size += request.size
        self._queue = remaining
        return list(batch.values())

    async def _write_batch(self, batch: Sequence[AppendRequest]) -> None:
        if len(batch) == 1 and self._database.is_sqlite:  # no row locks on SQLite, so the batch query is not needed
            await self._append_one(batch[0])
            return
        remaining = batch
        try:
            remaining = await self._append_batch(batch)
        except Exception as error:
            if isinstance(error, StoreUnavailable) and isinstance(error.__cause__, OUTAGES):
                for request in batch:
                    resolve(request, error)
                return
            logger.exception("batched append failed, retrying one by one %s", format_fields({"runs": len(batch)}))
        for request in remaining:
            self._detached.add(request.run)
            self._database.start_task(self._append_one(request))

    async def _append_batch(self, batch: Sequence[AppendRequest]) -> Sequence[AppendRequest]:
        """Append in one transaction every request that follows the stored envelopes. Return the other requests."""
        by_digest = {digest_of(*request.run): request for request in batch}
        conditions = (RUNS.c.digest.in_(by_digest), IS_OPEN, RUNS.c.replica == batch[0].replica)
        # Rows are locked in the same order as in ``renew``, because another order could cause a deadlock.
        statement = select(RUNS.c.number, RUNS.c.digest, RUNS.c.last_seq).where(*conditions).order_by(RUNS.c.number)
        async with self._database.write_transaction() as connection:
            rows = (await connection.execute(statement.with_for_update(skip_locked=True))).all()
            accepted = {number: by_digest.pop(name) for number, name, last in rows if is_next(by_digest[name], last)}
            if accepted:
                await insert_envelopes(
                    connection, [(number, envelope) for number in accepted for envelope in accepted[number].envelopes]
                )
                ends = [{"of_run": number, "last": request.envelopes[-1].seq} for number, request in accepted.items()]
                await connection.execute(ADVANCE_EACH, ends)
        for request in accepted.values():
            resolve(request)
        return list(by_digest.values())

    async def _append_one(self, request: AppendRequest) -> None:
        """Append one request in its own transaction, so that a lock on its row delays no other run."""
        try:
            async with self._database.write_transaction() as connection:
                await append_request(connection, request)
        except Exception as error:  # noqa: BLE001 - passed to the waiting caller
            resolve(request, error)
        else:
            resolve(request)
        finally:
            self._detached.discard(request.run)
            self._start_worker()


async def append_request(connection: AsyncConnection, request: AppendRequest) -> None:
    """Append the envelopes of one request that are not stored yet.

    Raises ``LeaseLost``, or ``ValueError`` for a gap.
    """
    run, replica, envelopes = request[:3]
    if await write_envelopes(connection, run, replica, envelopes):
        return
    record = await lock_run(connection, run)
    if record is None or not record.is_open or record.replica != replica:
        raise LeaseLost(run.run_id)
    await write_envelopes(connection, run, replica, unpersisted(record, envelopes))


def is_next(request: AppendRequest, last_seq: int) -> bool:
    """True if the request directly follows ``last_seq``."""
    return request.envelopes[0].seq == last_seq + 1


def resolve(request: AppendRequest, error: Exception | None = None) -> None:
    """Set the outcome of a request, unless its caller was cancelled."""
    if request.done.done():
        return
    if error is None:
        request.done.set_result(None)
    else:
        request.done.set_exception(error)
