"""Appends of envelopes to a database, for all runs of a process in batches.

Rule: a replica writes only to runs whose row names it, and checks this under the lock of the row. Appends that arrive
during a transaction form the next batch, whatever run they belong to, so many slow runs need few commits. A run that
may not be written does not keep the others of its batch from being stored.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import LargeBinary, bindparam, select, text, update
from sqlalchemy import insert as plain_insert
from sqlalchemy.ext.asyncio import AsyncConnection

from agui_container.ports.records import RunKey, RunRecord
from agui_container.ports.store import LeaseLost
from agui_container.protocol.envelope import Envelope
from agui_container.stores.sql.database import Database, mark_retrieved
from agui_container.stores.sql.rows import RUN_FACTS, run_record
from agui_container.stores.sql.schema import ENVELOPES, RUNS, digest_of

MAX_RUNS, MAX_BYTES = 200, 4_000_000
"""Limits of one batch: runs, and bytes of event data. The request that exceeds the bytes is still included."""

LOCK_EACH = select(*RUN_FACTS).where(RUNS.c.digest.in_(bindparam("runs", expanding=True))).order_by(RUNS.c.number)
"""Rows are locked in the same order as in ``renew``, because another order could cause a deadlock."""

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
        self._is_working = False

    async def put(self, run: RunKey, replica: str, envelopes: Sequence[Envelope]) -> None:
        """Append envelopes to a run, and wait until they are stored. Raises as ``DurableStore.append``."""
        if not envelopes:
            return
        size = sum(len(envelope.data) for envelope in envelopes)
        request = AppendRequest(run, replica, envelopes, size, asyncio.get_running_loop().create_future())
        request.done.add_done_callback(mark_retrieved)
        self._queue.append(request)
        if not self._is_working:
            self._database.start_task(self._drain_queue())
            self._is_working = True
        await self._database.with_timeout(request.done)

    async def _drain_queue(self) -> None:
        try:
            while batch := self._next_batch():
                await self._write_batch(batch)
        finally:
            self._is_working = False

    def _next_batch(self) -> Mapping[bytes, AppendRequest]:
        """Take the requests of the next transaction, at most one per run, by the digests of the runs."""
        batch: dict[bytes, AppendRequest] = {}
        remaining, size = [], 0
        for request in self._queue:
            digest = digest_of(*request.run)
            if len(batch) == MAX_RUNS or size > MAX_BYTES or digest in batch:
                remaining.append(request)
            else:
                batch[digest] = request
                size += request.size
        self._queue = remaining
        return batch

    async def _write_batch(self, batch: Mapping[bytes, AppendRequest]) -> None:
        try:
            async with self._database.write_transaction() as connection:
                refused = await append_each(connection, batch)
        except Exception as error:  # noqa: BLE001 - passed to the waiting callers
            refused = dict.fromkeys(batch, error)
        for digest, request in batch.items():
            if request.done.done():  # its caller was cancelled
                continue
            if (refusal := refused.get(digest)) is None:
                request.done.set_result(None)
            else:
                request.done.set_exception(refusal)


async def append_each(connection: AsyncConnection, batch: Mapping[bytes, AppendRequest]) -> dict[bytes, Exception]:
    """Append the envelopes that are not stored yet. Return ``LeaseLost`` or ``ValueError`` of the refused requests."""
    refused: dict[bytes, Exception] = {name: LeaseLost(request.run.run_id) for name, request in batch.items()}
    rows = (await connection.execute(LOCK_EACH.with_for_update(), {"runs": list(batch)})).all()
    new: dict[int, Sequence[Envelope]] = {}
    for row in rows:
        record, request = run_record(row), batch[row.digest]
        if record.is_open and record.replica == request.replica:
            try:
                new[row.number] = unpersisted(record, request.envelopes)
                del refused[row.digest]
            except ValueError as error:
                refused[row.digest] = error
    await insert_envelopes(connection, [(number, envelope) for number, each in new.items() for envelope in each])
    ends = [{"of_run": number, "last": each[-1].seq} for number, each in new.items() if each]
    if ends:
        await connection.execute(ADVANCE_EACH, ends)
    return refused


def unpersisted(record: RunRecord, envelopes: Sequence[Envelope]) -> Sequence[Envelope]:
    """Return the envelopes that are not stored yet. Raises ``ValueError`` if they leave a gap after the stored ones."""
    new = [envelope for envelope in envelopes if envelope.seq > record.last_seq]
    if new and new[0].seq != record.last_seq + 1:
        raise ValueError(f"envelope {new[0].seq} cannot follow {record.last_seq}")
    return new


async def insert_envelopes(connection: AsyncConnection, rows: Sequence[tuple[int, Envelope]]) -> None:
    """Insert envelopes. SQLite runs a prepared statement per row, PostgreSQL one statement for all rows."""
    if not rows:
        return
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
