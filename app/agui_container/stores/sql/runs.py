"""Runs and their envelopes in a database.

Rule: a replica writes only to runs whose row names it, and checks this in the same transaction.
"""

from collections.abc import Sequence
from functools import cache

from ag_ui.core import EventType
from sqlalchemy import ColumnElement, bindparam, delete, func, select, update
from sqlalchemy import insert as plain_insert
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningInsert

from agui_container.ports.records import (
    AlreadyExists,
    Change,
    Claim,
    Claimed,
    Ending,
    Lease,
    Page,
    RunKey,
    RunProgress,
    RunRecord,
    RunStatus,
    ThreadBusy,
    ThreadKey,
    ThreadStatus,
    claimed_run,
)
from agui_container.ports.store import PAGE, READ_BYTES, READ_EVENTS, LeaseLost
from agui_container.protocol.wire.envelope import Envelope
from agui_container.stores.page_tokens import make_page, parse_number, unpersisted
from agui_container.stores.sql.database import Database, uncancellable
from agui_container.stores.sql.envelopes import RUNNING, AppendBatcher, lock_run, write_envelopes
from agui_container.stores.sql.rows import (
    RUN_FACTS,
    apply_change,
    insert,
    is_run,
    is_thread,
    lock_thread,
    run_record,
    touch,
)
from agui_container.stores.sql.schema import ENVELOPES, RUNS, THREADS, digest_of

REPORT_PROGRESS = (
    update(RUNS).where(RUNS.c.number == bindparam("at")).values(readers=bindparam("read_by"), usage=bindparam("cost"))
)
"""Stores the progress that a run's own replica reports."""

ACTIVE_NUMBER, ACTIVE_OWNER = RUNS.c.number + 0, RUNS.c.owner.concat("")
"""Number and owner in a search for active runs. SQLite has no index of these expressions, so it reads the one of active
runs. With the plain columns it reads all runs in the order of their numbers, and takes the active ones."""

TYPES = {kind.value: kind for kind in EventType}


class SqlRuns:
    """``RunStore`` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._appends = AppendBatcher(database)

    # --- writing ---

    @uncancellable
    async def claim(self, claim: Claim) -> Claimed | AlreadyExists | ThreadBusy:
        """Create the run as active, or return the run that prevents it."""
        async with self._database.write_transaction() as connection:
            thread = await _claim_thread(connection, claim)
            rows = select(*RUN_FACTS).where(is_run(claim.key) | ((RUNS.c.thread == thread) & RUNNING))
            found = [run_record(row) for row in await connection.execute(rows)]
            for run in found:
                if run.key == claim.key:
                    return AlreadyExists(run)
            if found:
                return ThreadBusy(found[0])
            if claim.continues is not None:
                newest = await _newest_run(connection, RUNS.c.thread == thread)
                if newest is not None and newest.key.run_id != claim.continues:
                    return ThreadBusy(newest)
            await connection.execute(plain_insert(RUNS).values(_row(claim, thread)))
            await touch(connection, thread, changed_at=claim.now)
        return Claimed(claimed_run(claim))

    async def append(self, run: RunKey, replica: str, envelopes: Sequence[Envelope]) -> None:
        """Append envelopes. Raises as ``AppendBatcher.put``."""
        await self._appends.put(run, replica, envelopes)

    @uncancellable
    async def finish(self, run: RunKey, replica: str, envelopes: Sequence[Envelope], ending: Ending) -> None:
        """Store the last envelopes, the ending and the change of the thread in one transaction.

        Raises as ``append``.
        """
        end = {"status": ending.status, "ended_at": ending.ended_at, "usage": ending.usage, "error": ending.error}
        async with self._database.write_transaction() as connection:
            thread = await lock_thread(connection, run.thread)
            if thread is None:
                raise LeaseLost(run.run_id)
            if not await write_envelopes(connection, run, replica, envelopes, **end):
                record = await lock_run(connection, run)
                if record is None or record.replica != replica:
                    raise LeaseLost(run.run_id)
                if not record.is_active:
                    if (record.status, record.ended_at) == (ending.status, ending.ended_at):
                        return
                    raise LeaseLost(run.run_id)
                await write_envelopes(connection, run, replica, unpersisted(record, envelopes), **end)
            turn = {} if ending.turn is None else {"status": ending.turn}
            revision = await touch(connection, thread, changed_at=ending.ended_at, **turn)
            await apply_change(connection, thread, revision, ending.change)

    @uncancellable
    async def change(self, run: RunKey, replica: str, now: float, change: Change) -> None:
        """Change the thread of an active run. Raises ``LeaseLost``."""
        async with self._database.write_transaction() as connection:
            thread = await lock_thread(connection, run.thread)
            record = await lock_run(connection, run)
            if thread is None or record is None or not record.is_active or record.replica != replica:
                raise LeaseLost(run.run_id)
            revision = await touch(connection, thread, changed_at=now)
            await apply_change(connection, thread, revision, change)

    # --- reading ---

    @uncancellable
    async def envelopes(self, run: RunKey, after: int) -> Sequence[Envelope]:
        """Return the next envelopes after ``seq`` ``after``: at most ``READ_EVENTS`` and about ``READ_BYTES``."""
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
        async with self._database.read_transaction() as connection:
            rows = await connection.execute(query.order_by(summed.c.seq))
            return [Envelope(run.run_id, seq, TYPES[kind], data) for seq, kind, data in rows]

    @uncancellable
    async def get(self, key: RunKey) -> RunRecord | None:
        """Return the record of a run, or None."""
        async with self._database.read_transaction() as connection:
            row = (await connection.execute(select(*RUN_FACTS).where(is_run(key)))).first()
        return run_record(row) if row else None

    async def latest(self, thread: ThreadKey) -> RunRecord | None:
        """Return the thread's newest run, or None. An active run is always the newest."""
        number = select(THREADS.c.number).where(is_thread(thread)).scalar_subquery()
        return await self._newest(RUNS.c.thread == number)

    async def find_by_run_id(self, owner: str, run_id: str) -> RunRecord | None:
        """Return an owner's newest run with this id, or None.

        The search starts at the newest run, because most callers want it.
        """
        return await self._newest(RUNS.c.owner == owner, RUNS.c.run_id == run_id)

    @uncancellable
    async def _newest(self, *conditions: ColumnElement[bool]) -> RunRecord | None:
        async with self._database.read_transaction() as connection:
            return await _newest_run(connection, *conditions)

    @uncancellable
    async def list(self, owner: str | None, *, active: bool = False, page: str | None = None) -> Page[RunRecord]:
        """List a page of runs, newest first. Raises ``BadToken``."""
        number, run_owner = (ACTIVE_NUMBER, ACTIVE_OWNER) if active else (RUNS.c.number, RUNS.c.owner)
        query = select(*RUN_FACTS).order_by(number.desc()).limit(PAGE + 1)
        if owner is not None:
            query = query.where(run_owner == owner)
        if active:
            query = query.where(RUNNING)
        if page is not None:
            query = query.where(number < parse_number(page))
        async with self._database.read_transaction() as connection:
            rows = (await connection.execute(query)).all()
        items, next_token = make_page(rows, PAGE, lambda row: str(row.number))
        return Page([run_record(row) for row in items], next_token)

    # --- leases ---

    @uncancellable
    async def renew(self, replica: str, until: float) -> Sequence[Lease]:
        """Extend the leases of the replica's active runs to ``until``, in Unix seconds. Return the leases."""
        in_order = select(RUNS.c.number).where(RUNNING, RUNS.c.replica == replica).order_by(ACTIVE_NUMBER)
        statement = update(RUNS).where(RUNS.c.number.in_(in_order.with_for_update())).values(lease_until=until)
        facts = (RUNS.c.owner, RUNS.c.thread_id, RUNS.c.run_id, RUNS.c.unwanted)
        async with self._database.write_transaction() as connection:
            return [
                Lease(RunKey(*key), unwanted)
                for *key, unwanted in await connection.execute(statement.returning(*facts))
            ]

    @uncancellable
    async def report_progress(self, replica: str, progress: Sequence[RunProgress]) -> None:
        """Store the progress of the replica's active runs.

        This is a transaction of its own, not part of ``renew``. If one transaction updates a row twice, PostgreSQL
        checks the foreign key and waits for the lock of the thread. ``finish`` holds that lock while it waits for the
        row, so both would deadlock. Rows are locked in the same order as in ``renew``.
        """
        progress_by_digest = {digest_of(*it.key): it for it in progress}
        statement = select(RUNS.c.number, RUNS.c.digest).where(
            RUNNING, RUNS.c.replica == replica, RUNS.c.digest.in_(progress_by_digest)
        )
        async with self._database.write_transaction() as connection:
            found = (await connection.execute(statement.order_by(RUNS.c.number).with_for_update())).all()
            rows = [
                {"at": at, "read_by": progress_by_digest[name].readers, "cost": progress_by_digest[name].usage}
                for at, name in found
            ]
            if rows:
                await connection.execute(REPORT_PROGRESS, rows)

    @uncancellable
    async def request_cancel(self, run: RunKey) -> bool:
        """Request the cancellation of a run. Return True if the run is active."""
        statement = update(RUNS).where(is_run(run), RUNNING).values(unwanted=True)
        async with self._database.write_transaction() as connection:
            return (await connection.execute(statement)).rowcount == 1

    @uncancellable
    async def expired(self, now: float) -> Sequence[RunRecord]:
        """List active runs whose lease has expired, oldest lease first."""
        query = select(*RUN_FACTS).where(RUNNING, RUNS.c.lease_until <= now)
        async with self._database.read_transaction() as connection:
            return [run_record(row) for row in await connection.execute(query.order_by(RUNS.c.lease_until).limit(PAGE))]

    @uncancellable
    async def take_over(self, run: RunRecord, replica: str, until: float) -> bool:
        """Assign an expired run to this replica. Return False if its row differs from ``run``."""
        unchanged = (RUNS.c.replica == run.replica, RUNS.c.lease_until == run.lease_until)
        statement = update(RUNS).where(is_run(run.key), RUNNING, *unchanged).values(replica=replica, lease_until=until)
        async with self._database.write_transaction() as connection:
            return (await connection.execute(statement)).rowcount == 1

    @uncancellable
    async def forget(self, ended_before: float, *, limit: int = PAGE) -> int:
        """Delete the envelopes of runs that ended before ``ended_before``. Return the number of runs.

        Inputs that older replicas stored are deleted, too. The row of a run is locked before its envelopes, in the
        order in which the deletion of a thread locks them. Locked rows are skipped.
        """
        query = select(RUNS.c.number).where(RUNS.c.kept, RUNS.c.ended_at < ended_before)
        async with self._database.write_transaction() as connection:
            oldest = query.order_by(RUNS.c.ended_at).limit(limit).with_for_update(skip_locked=True)
            numbers = (await connection.scalars(oldest)).all()
            await connection.execute(update(RUNS).where(RUNS.c.number.in_(numbers)).values(kept=False, input=None))
            await connection.execute(delete(ENVELOPES).where(ENVELOPES.c.run.in_(numbers)))
        return len(numbers)


# --- parts of a write -------------------------------------------------------------------------------------------------


async def _newest_run(connection: AsyncConnection, *conditions: ColumnElement[bool]) -> RunRecord | None:
    """Return the newest run under these conditions, or None."""
    newest = select(*RUN_FACTS).where(*conditions).order_by(RUNS.c.number.desc()).limit(1)
    row = (await connection.execute(newest)).first()
    return run_record(row) if row else None


async def _claim_thread(connection: AsyncConnection, claim: Claim) -> int:
    """Lock the thread of a claim, or create it. Return its number."""
    owner, thread_id = claim.key.thread
    row = {"digest": digest_of(owner, thread_id), "owner": owner, "thread_id": thread_id}
    times = {"created_at": claim.now, "changed_at": claim.now}
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


def _row(claim: Claim, thread: int) -> dict[str, object]:
    """Return the row of a new run."""
    return {
        **claim.key._asdict(),
        "thread": thread,
        "digest": digest_of(*claim.key),
        "replica": claim.replica,
        "lease_until": claim.until,
        "status": RunStatus.RUNNING,
        "started_at": claim.now,
        "kept": True,
        "fingerprint": claim.fingerprint,
    }
