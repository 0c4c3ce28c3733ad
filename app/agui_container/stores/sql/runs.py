"""Runs and their envelopes in a database.

Rule: what a replica writes it writes where the row says that the run is its own, in the same transaction.
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
)
from agui_container.ports.store import PAGE, READ_BYTES, READ_EVENTS, LeaseLost
from agui_container.protocol.wire.envelope import Envelope
from agui_container.stores.page_tokens import make_page, parse_number, unpersisted
from agui_container.stores.sql.database import Database, uncancellable
from agui_container.stores.sql.envelopes import RUNNING, AppendBatcher, held, write
from agui_container.stores.sql.rows import (
    RUN_FACTS,
    apply_change,
    insert,
    is_run,
    is_thread,
    locked,
    run_record,
    touch,
)
from agui_container.stores.sql.schema import ENVELOPES, RUNS, THREADS, digest_of

REPORT_PROGRESS = (
    update(RUNS).where(RUNS.c.number == bindparam("at")).values(readers=bindparam("read_by"), usage=bindparam("cost"))
)
"""How a run stands, from its own replica."""

TYPES = {kind.value: kind for kind in EventType}


class SqlRuns:
    """``Runs`` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._appends = AppendBatcher(database)

    # --- writing ---

    @uncancellable
    async def claim(self, claim: Claim) -> Claimed | AlreadyExists | ThreadBusy:
        """Make the run active, or say what is in the way."""
        async with self._database.writing() as connection:
            thread = await _thread(connection, claim)
            rows = select(*RUN_FACTS).where(is_run(claim.key) | ((RUNS.c.thread == thread) & RUNNING))
            found = [run_record(row) for row in await connection.execute(rows)]
            for run in found:
                if run.key == claim.key:
                    return AlreadyExists(run)
            if found:
                return ThreadBusy(found[0])
            await connection.execute(plain_insert(RUNS).values(_row(claim, thread)))
            await touch(connection, thread, changed_at=claim.now)
        return Claimed(RunRecord(claim.key, claim.replica, claim.until, RunStatus.RUNNING, claim.now))

    async def append(self, run: RunKey, replica: str, envelopes: Sequence[Envelope]) -> None:
        """Store the envelopes that follow."""
        await self._appends.put(run, replica, envelopes)

    @uncancellable
    async def finish(self, run: RunKey, replica: str, envelopes: Sequence[Envelope], ending: Ending) -> None:
        """Store the last envelopes, how the run ended, and what it did to its thread."""
        self._appends.forget(run)
        end = {"status": ending.status, "ended_at": ending.ended_at, "usage": ending.usage, "error": ending.error}
        async with self._database.writing() as connection:
            thread = await locked(connection, run.thread)
            if thread is None:
                raise LeaseLost(run.run_id)
            if not await write(connection, run, replica, envelopes, **end):
                record = await held(connection, run)
                if record is None or record.replica != replica:
                    raise LeaseLost(run.run_id)
                if not record.is_active:
                    if (record.status, record.ended_at) == (ending.status, ending.ended_at):
                        return
                    raise LeaseLost(run.run_id)
                await write(connection, run, replica, unpersisted(record, envelopes), **end)
            turn = {} if ending.turn is None else {"status": ending.turn}
            revision = await touch(connection, thread, changed_at=ending.ended_at, **turn)
            await apply_change(connection, thread, revision, ending.change)

    @uncancellable
    async def change(self, run: RunKey, replica: str, now: float, change: Change) -> None:
        """Change the thread of an active run."""
        async with self._database.writing() as connection:
            thread = await locked(connection, run.thread)
            record = await held(connection, run)
            if thread is None or record is None or not record.is_active or record.replica != replica:
                raise LeaseLost(run.run_id)
            revision = await touch(connection, thread, changed_at=now)
            await apply_change(connection, thread, revision, change)

    # --- reading ---

    @uncancellable
    async def envelopes(self, run: RunKey, after: int) -> Sequence[Envelope]:
        """What comes after ``seq`` ``after``."""
        size = func.length(ENVELOPES.c.data)
        number = select(RUNS.c.number).where(is_run(run)).scalar_subquery()
        part = (
            select(ENVELOPES.c.seq, ENVELOPES.c.type, ENVELOPES.c.data, size.label("size"))
            .where(ENVELOPES.c.run == number, ENVELOPES.c.seq > after)
            .order_by(ENVELOPES.c.seq)
            .limit(READ_EVENTS)
            .subquery()
        )
        before = func.sum(part.c.size).over(order_by=part.c.seq) - part.c.size
        summed = select(part.c.seq, part.c.type, part.c.data, before.label("before")).subquery()
        wanted = select(summed.c.seq, summed.c.type, summed.c.data).where(summed.c.before < READ_BYTES)
        async with self._database.reading() as connection:
            rows = await connection.execute(wanted.order_by(summed.c.seq))
            return [Envelope(run.run_id, seq, TYPES[kind], data) for seq, kind, data in rows]

    @uncancellable
    async def get(self, key: RunKey) -> RunRecord | None:
        """The run with this key."""
        async with self._database.reading() as connection:
            row = (await connection.execute(select(*RUN_FACTS).where(is_run(key)))).first()
        return run_record(row) if row else None

    async def latest(self, thread: ThreadKey) -> RunRecord | None:
        """The thread's active run, else the one that was claimed last: which is the active one where there is one."""
        number = select(THREADS.c.number).where(is_thread(thread)).scalar_subquery()
        return await self._newest(RUNS.c.thread == number)

    async def find_by_run_id(self, owner: str, run_id: str) -> RunRecord | None:
        """An owner's newest run with this id. They are gone through from the newest on: who looks means a new one."""
        return await self._newest(RUNS.c.owner == owner, RUNS.c.run_id == run_id)

    @uncancellable
    async def _newest(self, *which: ColumnElement[bool]) -> RunRecord | None:
        newest = select(*RUN_FACTS).where(*which).order_by(RUNS.c.number.desc()).limit(1)
        async with self._database.reading() as connection:
            row = (await connection.execute(newest)).first()
        return run_record(row) if row else None

    @uncancellable
    async def list(self, owner: str | None, *, active: bool = False, page: str | None = None) -> Page[RunRecord]:
        """Runs, the newest first."""
        wanted = select(*RUN_FACTS).order_by(RUNS.c.number.desc()).limit(PAGE + 1)
        if owner is not None:
            wanted = wanted.where(RUNS.c.owner == owner)
        if active:
            wanted = wanted.where(RUNNING)
        if page is not None:
            wanted = wanted.where(RUNS.c.number < parse_number(page))
        async with self._database.reading() as connection:
            rows = (await connection.execute(wanted)).all()
        shown, rest = make_page(rows, PAGE, lambda row: str(row.number))
        return Page([run_record(row) for row in shown], rest)

    # --- leases ---

    @uncancellable
    async def renew(self, replica: str, until: float) -> Sequence[Lease]:
        """Hold all runs of the replica until then."""
        in_order = select(RUNS.c.number).where(RUNNING, RUNS.c.replica == replica).order_by(RUNS.c.number)
        mine = update(RUNS).where(RUNS.c.number.in_(in_order.with_for_update())).values(lease_until=until)
        facts = (RUNS.c.owner, RUNS.c.thread_id, RUNS.c.run_id, RUNS.c.unwanted)
        async with self._database.writing() as connection:
            return [
                Lease(RunKey(*key), unwanted) for *key, unwanted in await connection.execute(mine.returning(*facts))
            ]

    @uncancellable
    async def report_progress(self, replica: str, standings: Sequence[RunProgress]) -> None:
        """Note how active runs of the replica stand.

        Apart from ``renew``: PostgreSQL looks for the thread of a row that one transaction changes twice, and waits for
        who holds it, as the end of a run does while it waits for the row. Locked in the order that ``renew`` has.
        """
        stand = {digest_of(*it.key): it for it in standings}
        mine = select(RUNS.c.number, RUNS.c.digest).where(RUNNING, RUNS.c.replica == replica, RUNS.c.digest.in_(stand))
        async with self._database.writing() as connection:
            found = (await connection.execute(mine.order_by(RUNS.c.number).with_for_update())).all()
            rows = [{"at": at, "read_by": stand[name].readers, "cost": stand[name].usage} for at, name in found]
            if rows:
                await connection.execute(REPORT_PROGRESS, rows)

    @uncancellable
    async def request_cancel(self, run: RunKey) -> bool:
        """Ask for the run's end."""
        asked = update(RUNS).where(is_run(run), RUNNING).values(unwanted=True)
        async with self._database.writing() as connection:
            return (await connection.execute(asked)).rowcount == 1

    @uncancellable
    async def expired(self, now: float) -> Sequence[RunRecord]:
        """Active runs whose lease is over."""
        late = select(*RUN_FACTS).where(RUNNING, RUNS.c.lease_until <= now)
        async with self._database.reading() as connection:
            return [run_record(row) for row in await connection.execute(late.order_by(RUNS.c.lease_until).limit(PAGE))]

    @uncancellable
    async def take_over(self, run: RunRecord, replica: str, until: float) -> bool:
        """Make an expired run this replica's."""
        as_it_was = (RUNS.c.replica == run.replica, RUNS.c.lease_until == run.lease_until)
        taken = update(RUNS).where(is_run(run.key), RUNNING, *as_it_was).values(replica=replica, lease_until=until)
        async with self._database.writing() as connection:
            return (await connection.execute(taken)).rowcount == 1

    @uncancellable
    async def forget(self, ended_before: float, *, limit: int = PAGE) -> int:
        """Remove the envelopes of runs that ended before then, and what an older replica has kept of their inputs.

        A run's row comes before its envelopes, as in the deletion of a thread, and who holds one is not waited for.
        """
        old = select(RUNS.c.number).where(RUNS.c.kept, RUNS.c.ended_at < ended_before)
        async with self._database.writing() as connection:
            oldest = old.order_by(RUNS.c.ended_at).limit(limit).with_for_update(skip_locked=True)
            numbers = (await connection.scalars(oldest)).all()
            await connection.execute(update(RUNS).where(RUNS.c.number.in_(numbers)).values(kept=False, input=None))
            await connection.execute(delete(ENVELOPES).where(ENVELOPES.c.run.in_(numbers)))
        return len(numbers)


# --- parts of a write -------------------------------------------------------------------------------------------------


async def _thread(connection: AsyncConnection, claim: Claim) -> int:
    """The thread of a claim, made where there is none, and locked."""
    owner, thread_id = claim.key.thread
    row = {"digest": digest_of(owner, thread_id), "owner": owner, "thread_id": thread_id}
    times = {"created_at": claim.now, "changed_at": claim.now}
    made = _locking(connection.dialect.name)
    number: int = await connection.scalar(made, {"status": ThreadStatus.NOT_STARTED, **row, **times}) or 0
    return number


@cache
def _locking(dialect: str) -> ReturningInsert[tuple[int]]:
    """Puts a thread in, or locks the one that is there. Made once: ``excluded`` is a copy of the table."""
    new = insert(dialect, THREADS)
    kept = new.on_conflict_do_update(index_elements=["digest"], set_={"digest": new.excluded.digest})
    return kept.returning(THREADS.c.number)


def _row(claim: Claim, thread: int) -> dict[str, object]:
    """The row of a run that begins."""
    return {
        **claim.key._asdict(),
        "thread": thread,
        "digest": digest_of(*claim.key),
        "replica": claim.replica,
        "lease_until": claim.until,
        "status": RunStatus.RUNNING,
        "started_at": claim.now,
        "kept": True,
    }
