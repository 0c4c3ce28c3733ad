"""Runs in a database, their envelopes and their leases.

Rule: a replica writes only to runs whose row names it, and checks this in the same transaction. Rows of several runs
are locked in the order of their numbers, because another order could cause a deadlock.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from ag_ui.core import EventType
from sqlalchemy import ColumnElement, Double, Insert, Row, bindparam, case, delete, func, literal, select, update
from sqlalchemy import insert as plain_insert
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningInsert

from agui_container.ports.records import (
    DAY,
    Begun,
    Busy,
    Claim,
    DayTokens,
    Ending,
    Exists,
    Lease,
    Page,
    RunKey,
    RunProgress,
    RunRecord,
    RunStatus,
    ThreadKey,
    ThreadStatus,
)
from agui_container.ports.store import PAGE, READ_BYTES, READ_EVENTS, READER_SECONDS, LeaseLost, Merge, RunQuery
from agui_container.protocol.envelope import Envelope
from agui_container.stores.page_tokens import make_page, parse_number
from agui_container.stores.sql.database import Database, reads, writes
from agui_container.stores.sql.envelopes import AppendBatcher, insert_envelopes, unpersisted
from agui_container.stores.sql.rows import (
    IS_OPEN,
    RUN_FACTS,
    apply_change,
    is_run,
    lock_thread,
    number_of,
    run_record,
    touch,
)
from agui_container.stores.sql.schema import ENVELOPES, NOTES, RUNS, THREADS, TOKENS, digest_of, insert
from agui_container.stores.sql.threads import read_thread

RunRow = Row[*tuple[Any, ...]]
"""A row of ``RUN_FACTS``."""

Now = ColumnElement[float]
"""Expression of the time by the clock of the database, in Unix seconds."""

REPORT_PROGRESS = (
    update(RUNS).where(RUNS.c.number == bindparam("at")).values(readers=bindparam("read_by"), usage=bindparam("cost"))
)
"""Stores the progress that a run's own replica reports."""

OPEN_NUMBER = RUNS.c.number + 0
"""Number in a search for open runs. SQLite has no index of this expression, so it reads the one of open runs. With the
plain column it reads all runs in the order of their numbers, and takes the open ones."""

LOCK_WITH_THREAD = select(*RUN_FACTS).select_from(THREADS.join(RUNS)).with_for_update()
"""Locks the thread of a run and then the run, as a claim and the deletion of the thread do."""

TYPES = {kind.value: kind for kind in EventType}


class SqlRuns:
    """Runs of a ``SqlStore``. ``now`` is the clock of a SQLite file, because PostgreSQL has one of its own."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._appends = AppendBatcher(database)
        self._now = now

    def _time(self) -> Now:
        """Return the expression of the time by the clock that all replicas share."""
        if self._database.is_sqlite:
            return literal(self._now(), Double)
        return func.extract("epoch", func.clock_timestamp()).cast(Double)

    async def _read_time(self, connection: AsyncConnection) -> float:
        return await connection.scalar(select(self._time())) or 0.0

    # --- claims ---

    @writes
    async def enqueue(self, connection: AsyncConnection, claim: Claim) -> RunRecord | None:
        thread = await _claim_thread(connection, claim)
        row = (await connection.execute(select(*RUN_FACTS).where(is_run(claim.key)))).first()
        if row is not None:
            return run_record(row)
        await _insert(connection, claim, thread, self._time(), RunStatus.QUEUED)
        return None

    @writes
    async def begin(self, connection: AsyncConnection, claim: Claim, merge: Merge) -> Begun | Exists | Busy:
        thread = await _claim_thread(connection, claim)
        rows = select(*RUN_FACTS).where(is_run(claim.key) | ((RUNS.c.thread == thread) & IS_OPEN))
        found = (await connection.execute(rows.order_by(RUNS.c.number))).all()
        own = next((row for row in found if row.digest == digest_of(*claim.key)), None)
        if own is not None and not claim.is_queued:
            return Exists(run_record(own))
        if claim.is_queued and (own is None or (own.replica, own.status) != (claim.replica, RunStatus.QUEUED)):
            raise LeaseLost(claim.key.run_id)
        if (other := await _preventing_run(connection, claim, thread, own, found)) is not None:
            return Busy(run_record(other))
        active = await (_insert if own is None else _activate)(
            connection, claim, thread, self._time(), RunStatus.RUNNING
        )
        stored = await read_thread(connection, claim.key.thread, notes=claim.notes)
        if stored is not None:
            change = await merge(stored)
            revision = await touch(connection, thread, changed_at=claim.started_at)
            await apply_change(connection, thread, revision, change)
        return Begun(run_record(active))

    # --- the end ---

    async def append(self, run: RunKey, replica: str, envelopes: Sequence[Envelope]) -> None:
        await self._appends.put(run, replica, envelopes)

    @writes
    async def finish(
        self, connection: AsyncConnection, run: RunKey, replica: str, envelopes: Sequence[Envelope], ending: Ending
    ) -> None:
        row = (await connection.execute(LOCK_WITH_THREAD.where(is_run(run)))).first()
        if row is None or row.replica != replica:
            raise LeaseLost(run.run_id)
        record = run_record(row)
        if not record.is_open:
            if (record.status, record.ended_at) == (ending.status, ending.ended_at):
                return
            raise LeaseLost(run.run_id)
        new = unpersisted(record, envelopes)
        await insert_envelopes(connection, [(row.number, envelope) for envelope in new])
        end = {"status": ending.status, "ended_at": ending.ended_at, "usage": ending.usage, "error": ending.error}
        last = update(RUNS).where(RUNS.c.number == row.number)
        await connection.execute(last.values(last_seq=record.last_seq + len(new), **end))
        turn = {} if ending.turn is None else {"status": ending.turn}
        revision = await touch(connection, row.thread, changed_at=ending.ended_at, **turn)
        await apply_change(connection, row.thread, revision, ending.change)
        if ending.tokens:
            day = int(await self._read_time(connection) // DAY)
            used = {"digest": digest_of(run.owner), "day": day, "tokens": ending.tokens}
            await connection.execute(_token_upsert(connection.dialect.name), used)

    @writes
    async def forget(
        self, connection: AsyncConnection, ended_before: float, notes_until: float, *, limit: int = PAGE
    ) -> int:
        """Lock the row of a run before its envelopes, as the deletion of a thread does. Locked rows are skipped."""
        await connection.execute(delete(NOTES).where(NOTES.c.until <= notes_until))
        query = select(RUNS.c.number).where(RUNS.c.kept, RUNS.c.ended_at < ended_before)
        oldest = query.order_by(RUNS.c.ended_at).limit(limit).with_for_update(skip_locked=True)
        numbers = (await connection.scalars(oldest)).all()
        await connection.execute(update(RUNS).where(RUNS.c.number.in_(numbers)).values(kept=False))
        await connection.execute(delete(ENVELOPES).where(ENVELOPES.c.run.in_(numbers)))
        return len(numbers)

    # --- leases ---

    async def renew(self, replica: str, lease: float, progress: Sequence[RunProgress] = ()) -> Mapping[RunKey, Lease]:
        if progress:
            await self._report_progress(replica, progress)
        return await self._renew(replica, lease)

    @writes
    async def _renew(self, connection: AsyncConnection, replica: str, lease: float) -> Mapping[RunKey, Lease]:
        in_order = select(RUNS.c.number).where(IS_OPEN, RUNS.c.replica == replica).order_by(OPEN_NUMBER)
        now = self._time()
        statement = update(RUNS).where(RUNS.c.number.in_(in_order.with_for_update())).values(lease_until=now + lease)
        is_read = RUNS.c.read_at > now - READER_SECONDS
        facts = (RUNS.c.owner, RUNS.c.thread_id, RUNS.c.run_id, RUNS.c.unwanted, is_read)
        rows = await connection.execute(statement.returning(*facts))
        return {RunKey(*key): Lease(unwanted, read) for *key, unwanted, read in rows}

    @writes
    async def _report_progress(
        self, connection: AsyncConnection, replica: str, progress: Sequence[RunProgress]
    ) -> None:
        """Store the progress of the replica's open runs.

        This is a transaction of its own, not part of ``_renew``. If one transaction updates a row twice, PostgreSQL
        checks the foreign key and waits for the lock of the thread. ``finish`` holds that lock while it waits for the
        row, so both would deadlock.
        """
        by_digest = {digest_of(*report.key): report for report in progress}
        statement = select(RUNS.c.number, RUNS.c.digest).where(
            IS_OPEN, RUNS.c.replica == replica, RUNS.c.digest.in_(by_digest)
        )
        found = (await connection.execute(statement.order_by(RUNS.c.number).with_for_update())).all()
        rows = [{"at": at, "read_by": by_digest[name].readers, "cost": by_digest[name].usage} for at, name in found]
        if rows:
            await connection.execute(REPORT_PROGRESS, rows)

    @writes
    async def cancel(self, connection: AsyncConnection, run: RunKey) -> bool:
        statement = update(RUNS).where(is_run(run), IS_OPEN).values(unwanted=True)
        return (await connection.execute(statement)).rowcount == 1

    @writes
    async def report_reader(self, connection: AsyncConnection, run: RunKey) -> None:
        await connection.execute(update(RUNS).where(is_run(run), IS_OPEN).values(read_at=self._time()))

    @writes
    async def take_over(self, connection: AsyncConnection, replica: str, lease: float) -> Sequence[RunRecord]:
        now = self._time()
        query = select(*RUN_FACTS).where(IS_OPEN, RUNS.c.replica != replica, RUNS.c.lease_until <= now)
        oldest = query.order_by(RUNS.c.lease_until).limit(PAGE).with_for_update(skip_locked=True)
        rows = (await connection.execute(oldest)).all()
        if rows:
            taken = update(RUNS).where(RUNS.c.number.in_([row.number for row in rows]))
            await connection.execute(taken.values(replica=replica, lease_until=now + lease))
        return [run_record(row) for row in rows]

    # --- reading ---

    @reads
    async def run(self, connection: AsyncConnection, key: RunKey) -> RunRecord | None:
        row = (await connection.execute(select(*RUN_FACTS).where(is_run(key)))).first()
        return run_record(row) if row else None

    @reads
    async def runs(
        self, connection: AsyncConnection, query: RunQuery, *, limit: int = PAGE, page: str | None = None
    ) -> Page[RunRecord]:
        number = OPEN_NUMBER if query.is_open else RUNS.c.number
        statement = select(*RUN_FACTS).order_by(number.desc()).limit(limit + 1)
        if query.is_open:
            statement = statement.where(IS_OPEN)
        if query.owner is not None and query.thread_id is not None:
            statement = statement.where(RUNS.c.thread == number_of(ThreadKey(query.owner, query.thread_id)))
        elif query.owner is not None:
            owner = RUNS.c.owner.concat("") if query.is_open else RUNS.c.owner  # as in ``OPEN_NUMBER``
            statement = statement.where(owner == query.owner)
        if query.run_id is not None:
            statement = statement.where(RUNS.c.run_id == query.run_id)
        if page is not None:
            statement = statement.where(number < parse_number(page))
        rows = (await connection.execute(statement)).all()
        items, next_token = make_page(rows, limit, lambda row: str(row.number))
        return Page([run_record(row) for row in items], next_token)

    @reads
    async def envelopes(self, connection: AsyncConnection, run: RunKey, after: int) -> Sequence[Envelope]:
        size = func.length(ENVELOPES.c.data)
        number = select(RUNS.c.number).where(is_run(run)).scalar_subquery()
        page_query = (
            select(ENVELOPES.c.seq, ENVELOPES.c.type, ENVELOPES.c.data, size.label("size"))
            .where(ENVELOPES.c.run == number, ENVELOPES.c.seq > after)
            .order_by(ENVELOPES.c.seq)
            .limit(READ_EVENTS)
            .subquery()
        )
        before = func.sum(page_query.c.size).over(order_by=page_query.c.seq) - page_query.c.size
        summed = select(page_query.c.seq, page_query.c.type, page_query.c.data, before.label("before")).subquery()
        query = select(summed.c.seq, summed.c.type, summed.c.data).where(summed.c.before < READ_BYTES)
        rows = await connection.execute(query.order_by(summed.c.seq))
        return [Envelope(run.run_id, seq, TYPES[kind], data) for seq, kind, data in rows]

    @reads
    async def tokens(self, connection: AsyncConnection, owner: str) -> DayTokens:
        at = await self._read_time(connection)
        of_day = select(TOKENS.c.tokens).where(TOKENS.c.digest == digest_of(owner), TOKENS.c.day == int(at // DAY))
        return DayTokens(await connection.scalar(of_day) or 0, at)


async def _preventing_run(
    connection: AsyncConnection, claim: Claim, thread: int, own: RunRow | None, found: Sequence[RunRow]
) -> RunRow | None:
    for row in found:
        is_before = own is None or row.number < own.number
        if row.status == RunStatus.RUNNING or (is_before and row.replica != claim.replica):
            return row
    if claim.continues is None:
        return None
    begun = select(*RUN_FACTS).where(RUNS.c.thread == thread, RUNS.c.status != RunStatus.QUEUED)
    newest = (await connection.execute(begun.order_by(RUNS.c.number.desc()).limit(1))).first()
    return None if newest is None or newest.run_id == claim.continues else newest


async def _claim_thread(connection: AsyncConnection, claim: Claim) -> int:
    """Lock the thread of a claim, or create it. Return its number."""
    if claim.is_queued:
        existing = await lock_thread(connection, claim.key.thread)
        if existing is None:
            raise LeaseLost(claim.key.run_id)
        return existing
    owner, thread_id = claim.key.thread
    row = {"digest": digest_of(owner, thread_id), "owner": owner, "thread_id": thread_id}
    times = {"created_at": claim.started_at, "changed_at": claim.started_at}
    made = _thread_upsert(connection.dialect.name)
    number: int = await connection.scalar(made, {"status": ThreadStatus.NOT_STARTED, **row, **times}) or 0
    return number


@cache
def _thread_upsert(dialect: str) -> ReturningInsert[tuple[int]]:
    """Return the statement that creates a thread or locks the existing one.

    It is built once, because ``excluded`` copies the table.
    """
    new = insert(dialect, THREADS)
    upsert = new.on_conflict_do_update(index_elements=["digest"], set_={"digest": new.excluded.digest})
    return upsert.returning(THREADS.c.number)


async def _insert(connection: AsyncConnection, claim: Claim, thread: int, now: Now, status: RunStatus) -> RunRow:
    row = {
        **claim.key._asdict(),
        "thread": thread,
        "digest": digest_of(*claim.key),
        "replica": claim.replica,
        "lease_until": now + claim.lease,
        "status": status,
        "started_at": claim.started_at,
        "kept": True,
        "fingerprint": claim.fingerprint,
    }
    return (await connection.execute(plain_insert(RUNS).values(row).returning(*RUN_FACTS))).one()


async def _activate(connection: AsyncConnection, claim: Claim, thread: int, now: Now, status: RunStatus) -> RunRow:
    statement = update(RUNS).where(is_run(claim.key), RUNS.c.thread == thread, RUNS.c.replica == claim.replica)
    values = statement.values(status=status, lease_until=now + claim.lease)
    row = (await connection.execute(values.returning(*RUN_FACTS))).first()
    if row is None:  # another replica has taken it over meanwhile
        raise LeaseLost(claim.key.run_id)
    return row


@cache
def _token_upsert(dialect: str) -> Insert:
    """Return the statement that adds to the tokens of a day, or replaces those of another day."""
    new = insert(dialect, TOKENS)
    before = case((TOKENS.c.day == new.excluded.day, TOKENS.c.tokens), else_=0)
    values = {"day": new.excluded.day, "tokens": before + new.excluded.tokens}
    return new.on_conflict_do_update(index_elements=["digest"], set_=values)
