"""Leases in every store: a run is one replica's, and of several that want a dead one's run one gets it."""

import asyncio

import psycopg
import pytest
from sqlalchemy import Engine, make_url

from agui_container.ports.records import AlreadyExists, Change, Lease, RunProgress, RunStatus
from agui_container.ports.store import PAGE, LeaseLost, Store
from agui_container.stores import open_store
from agui_container.stores.sql.database import TIMEOUT_SECONDS
from agui_container.stores.sql.store import SqlStore
from tests.requirements import requirement
from tests.stores.conftest import Listen, Replica
from tests.stores.doubles import RUN, THREAD, A, B, claim, claim_run, ending, envelopes, message, run


async def test_a_lease_ends_unless_it_is_renewed(store: Store) -> None:
    first = await claim_run(store, now=100.0)
    other = await claim_run(store, run("r2", "t2"), now=101.0)
    assert list(await store.runs.expired(114.9)) == []
    assert list(await store.runs.expired(115.0)) == [first]
    assert list(await store.runs.expired(200.0)) == [first, other]
    assert set(await store.runs.renew(A, 300.0)) == {Lease(first.key), Lease(other.key)}
    assert list(await store.runs.expired(200.0)) == []


async def test_runs_whose_lease_is_over_are_told_bit_by_bit(store: Store) -> None:
    late = [await claim_run(store, run("r1", f"t{n}"), now=float(n)) for n in range(PAGE + 1)]
    assert list(await store.runs.expired(200.0)) == late[:PAGE]


async def test_a_replica_renews_its_own_active_runs(store: Store) -> None:
    await claim_run(store, RUN, A)
    await claim_run(store, run("r2", "t2"), B)
    await claim_run(store, run("r3", "t3"), A)
    await store.runs.finish(run("r3", "t3"), A, [], ending())
    assert list(await store.runs.renew(A, 300.0)) == [Lease(RUN)]
    assert [record.key for record in await store.runs.expired(200.0)] == [run("r2", "t2")]


@requirement("replica.standing")
async def test_a_replica_says_how_its_active_runs_stand(store: Store) -> None:
    theirs, ended, other = run("r2", "t2"), run("r3", "t3"), run("r4", "t4")
    for key, replica in ((RUN, A), (theirs, B), (ended, A), (other, A)):
        await claim_run(store, key, replica)
    await store.runs.finish(ended, A, [], ending())
    await store.runs.report_progress(A, [RunProgress(key, 2, b"[1]") for key in (RUN, theirs, ended)])
    stand = [await store.runs.get(key) for key in (RUN, theirs, ended, other)]
    assert [it and (it.readers, it.usage) for it in stand] == [(2, b"[1]"), (0, None), (0, ending().usage), (0, None)]
    await store.runs.report_progress(A, [RunProgress(RUN, 1, b"[2]")])
    await store.runs.report_progress(A, [])
    await store.runs.renew(A, 500.0)
    [known, _] = (await store.runs.list("owner", active=True)).items[:0:-1]
    assert (known.key, known.readers, known.usage) == (RUN, 1, b"[2]")


@requirement("replica.standing")
async def test_a_replica_that_says_how_runs_stand_waits_for_no_threads_lock(postgres_url: str) -> None:
    store = open_store(postgres_url)
    await store.open()
    await claim_run(store)
    async with await psycopg.AsyncConnection.connect(postgres_url) as holder:
        await holder.execute("SELECT 1 FROM threads FOR UPDATE")
        async with asyncio.timeout(TIMEOUT_SECONDS / 2):
            assert list(await store.runs.renew(A, 300.0)) == [Lease(RUN)]
            await store.runs.report_progress(A, [RunProgress(RUN, 2)])
    await store.aclose()


@requirement("durable.cancel")
async def test_a_replica_that_renews_hears_which_runs_are_unwanted(store: Store) -> None:
    await claim_run(store, RUN, A)
    await claim_run(store, run("r2", "t2"), A)
    assert await store.runs.request_cancel(RUN)
    assert set(await store.runs.renew(A, 300.0)) == {Lease(RUN, is_cancel_requested=True), Lease(run("r2", "t2"))}
    await store.runs.finish(RUN, A, [], ending())
    assert not await store.runs.request_cancel(RUN)
    assert not await store.runs.request_cancel(run("nobody"))


async def test_a_run_that_is_taken_over_is_no_longer_its_replicas(store: Store) -> None:
    record = await claim_run(store)
    await store.runs.append(RUN, A, envelopes(1, 2))
    assert await store.runs.take_over(record, B, 300.0)
    with pytest.raises(LeaseLost):
        await store.runs.append(RUN, A, envelopes(3, 3))
    with pytest.raises(LeaseLost):
        await store.runs.append(RUN, A, envelopes(1, 2))
    with pytest.raises(LeaseLost):
        await store.runs.finish(RUN, A, envelopes(3, 3), ending())
    with pytest.raises(LeaseLost):
        await store.runs.change(RUN, A, 1.0, Change([message("m")]))
    assert list(await store.runs.renew(A, 400.0)) == []
    await store.runs.finish(RUN, B, envelopes(3, 3), ending(status=RunStatus.ERROR))
    assert list(await store.runs.envelopes(RUN, 0)) == envelopes(1, 3)
    again = await store.runs.claim(claim(replica=A))
    assert isinstance(again, AlreadyExists)
    assert (again.run.replica, again.run.status) == (B, RunStatus.ERROR)


async def test_a_run_that_was_renewed_is_not_taken_over(store: Store) -> None:
    record = await claim_run(store)
    await store.runs.renew(A, 300.0)
    assert not await store.runs.take_over(record, B, 300.0)
    await store.runs.append(RUN, A, envelopes(1, 1))


async def test_a_run_that_has_ended_is_not_taken_over(store: Store) -> None:
    record = await claim_run(store)
    await store.runs.finish(RUN, A, [], ending())
    assert not await store.runs.take_over(record, B, 300.0)


async def test_of_several_takers_one_gets_the_run(replica: Replica) -> None:
    stores = [await replica() for _ in range(3)]
    record = await claim_run(stores[0])
    names = [f"taker-{n}" for n in range(9)]
    taken = await asyncio.gather(*(stores[n % 3].runs.take_over(record, name, 300.0) for n, name in enumerate(names)))
    assert sum(taken) == 1
    now = await stores[0].runs.get(RUN)
    assert now is not None
    assert now.replica == names[taken.index(True)]


async def test_writers_that_race_a_taker_leave_a_whole_log(replica: Replica) -> None:
    """Events written before the takeover are stored once, and later ones are not stored."""
    ours, theirs = await replica(), await replica()
    record = await claim_run(ours)

    under_way = asyncio.Event()

    async def write() -> int:
        for seq in range(1, 200):
            try:
                await ours.runs.append(RUN, A, envelopes(seq, seq))
            except LeaseLost:
                return seq - 1
            if seq == 5:
                under_way.set()
            await asyncio.sleep(0)
        return 199

    async def take() -> None:
        await under_way.wait()
        assert await theirs.runs.take_over(record, B, 300.0)

    written, _ = await asyncio.gather(write(), take())
    taken = await theirs.runs.get(RUN)
    assert taken is not None
    assert taken.last_seq == written
    assert list(await theirs.runs.envelopes(RUN, 0)) == envelopes(1, written)


async def test_a_deleted_threads_run_is_nobodys(store: Store) -> None:
    record = await claim_run(store)
    assert await store.threads.delete(THREAD)
    with pytest.raises(LeaseLost):
        await store.runs.append(RUN, A, envelopes(1, 1))
    with pytest.raises(LeaseLost):
        await store.runs.finish(RUN, A, [], ending())
    assert not await store.runs.take_over(record, B, 300.0)


async def test_old_runs_are_forgotten_but_known(store: Store) -> None:
    for n, ended_at in enumerate((10.0, 20.0, 30.0)):
        await claim_run(store, run(f"r{n}", f"t{n}"))
        await store.runs.finish(run(f"r{n}", f"t{n}"), A, envelopes(1, 2, f"r{n}"), ending(ended_at=ended_at))
    await claim_run(store, run("r3", "t3"))
    assert await store.runs.forget(25.0, limit=1) == 1
    assert await store.runs.forget(25.0) == 1
    assert await store.runs.forget(25.0) == 0
    assert list(await store.runs.envelopes(run("r1", "t1"), 0)) == []
    again = await store.runs.claim(claim(run("r1", "t1")))
    assert isinstance(again, AlreadyExists)
    assert (again.run.has_events, again.run.last_seq) == (False, 2)
    assert len(await store.runs.envelopes(run("r2", "t2"), 0)) == 2


async def test_a_run_is_forgotten_in_the_order_in_which_a_thread_is_deleted(sqlite_url: str, listen: Listen) -> None:
    store = SqlStore(make_url(sqlite_url))
    await store.open()
    await claim_run(store)
    await store.runs.finish(RUN, A, envelopes(1, 2), ending(ended_at=10.0))
    said: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        said.append(statement)

    listen(Engine, "before_cursor_execute", note)
    assert await store.runs.forget(25.0) == 1
    await store.aclose()
    changes = [statement.split()[:3] for statement in said if statement.startswith(("UPDATE", "DELETE"))]
    assert changes == [["UPDATE", "runs", "SET"], ["DELETE", "FROM", "envelopes"]]
