"""Leases in every durable store: a run is one replica's, and of several that want a dead one's run one gets it."""

import asyncio

import pytest
from msgspec.structs import replace

from agui_container.ports.records import Exists, Lease, RunProgress, RunStatus
from agui_container.ports.store import Delete, DurableStore, LeaseLost
from tests.stores.conftest import DurableReplica
from tests.stores.doubles import RUN, THREAD, A, B, begin, claim, claim_run, ending, envelopes, get_run, run


async def test_a_lease_ends_unless_it_is_renewed(durable: DurableStore) -> None:
    first = await claim_run(durable, lease=-2.0)
    other = await claim_run(durable, run("r2", "t2"), lease=-1.0)
    await claim_run(durable, run("r3", "t3"), lease=1000.0)
    assert (await durable.renew(A, -1.0)).keys() == {first.key, other.key, run("r3", "t3")}
    assert {record.key for record in await durable.take_over(B, 1000.0)} == {first.key, other.key, run("r3", "t3")}
    assert list(await durable.take_over(A, 1000.0)) == []
    assert len(await durable.renew(B, -1.0)) == 3
    assert list(await durable.take_over(B, 1000.0)) == [], "a replica does not take over its own runs"
    assert len(await durable.take_over(A, 1000.0)) == 3


async def test_the_runs_whose_lease_ended_first_are_taken_over_first(durable: DurableStore) -> None:
    for n in range(3):
        await claim_run(durable, run(f"r{n}", f"t{n}"), lease=n - 10.0)
    assert [record.key.run_id for record in await durable.take_over(B, 1000.0)] == ["r0", "r1", "r2"]


async def test_a_replica_reports_the_progress_of_its_open_runs(durable: DurableStore) -> None:
    theirs, ended, other = run("r2", "t2"), run("r3", "t3"), run("r4", "t4")
    for key, replica in ((RUN, A), (theirs, B), (ended, A), (other, A)):
        await claim_run(durable, key, replica)
    await durable.finish(ended, A, [], ending())
    await durable.renew(A, 15.0, [RunProgress(key, 2, b"[1]") for key in (RUN, theirs, ended)])
    stand = [await durable.run(key) for key in (RUN, theirs, ended, other)]
    assert [it and (it.readers, it.usage) for it in stand] == [(2, b"[1]"), (0, None), (0, ending().usage), (0, None)]
    await durable.renew(A, 15.0, [RunProgress(RUN, 1, b"[2]")])
    assert await durable.renew(A, 15.0) == {RUN: Lease(), other: Lease()}
    known = await get_run(durable)
    assert (known.readers, known.usage) == (1, b"[2]")


async def test_a_replica_that_renews_hears_which_runs_are_unwanted_or_read_elsewhere(durable: DurableStore) -> None:
    for key in (RUN, run("r2", "t2"), run("r3", "t3")):
        await claim_run(durable, key, A)
    assert await durable.cancel(RUN)
    await durable.report_reader(run("r2", "t2"))
    await durable.report_reader(run("nobody"))
    assert await durable.renew(A, 300.0) == {
        RUN: Lease(is_cancel_requested=True),
        run("r2", "t2"): Lease(is_read_elsewhere=True),
        run("r3", "t3"): Lease(),
    }
    await durable.finish(RUN, A, [], ending())
    assert not await durable.cancel(RUN)
    assert not await durable.cancel(run("nobody"))


async def test_a_run_that_is_taken_over_is_no_longer_its_replicas(durable: DurableStore) -> None:
    record = await claim_run(durable, lease=-1.0)
    await durable.append(RUN, A, envelopes(1, 2))
    (taken,) = await durable.take_over(B, 300.0)
    assert taken == replace(record, last_seq=2)
    for late in (durable.append(RUN, A, envelopes(3, 3)), durable.append(RUN, A, envelopes(1, 2))):
        with pytest.raises(LeaseLost):
            await late
    with pytest.raises(LeaseLost):
        await durable.finish(RUN, A, envelopes(3, 3), ending())
    assert list(await durable.renew(A, 400.0)) == []
    await durable.finish(RUN, B, envelopes(3, 3), ending(status=RunStatus.ERROR))
    assert list(await durable.envelopes(RUN, 0)) == envelopes(1, 3)
    again = await begin(durable, claim(replica=A))
    assert isinstance(again, Exists)
    assert (again.run.replica, again.run.status) == (B, RunStatus.ERROR)


async def test_a_run_that_has_ended_is_not_taken_over(durable: DurableStore) -> None:
    await claim_run(durable, lease=-1.0)
    await durable.finish(RUN, A, [], ending())
    assert list(await durable.take_over(B, 300.0)) == []


async def test_of_several_takers_one_gets_the_run(durable_replica: DurableReplica) -> None:
    stores = [await durable_replica() for _ in range(3)]
    await claim_run(stores[0], lease=-1.0)
    names = [f"taker-{n}" for n in range(9)]
    taken = await asyncio.gather(*(stores[n % 3].take_over(name, 300.0) for n, name in enumerate(names)))
    counts = list(map(len, taken))
    assert sum(counts) == 1
    now = await stores[0].run(RUN)
    assert now is not None
    assert now.replica == names[counts.index(1)]


async def test_writers_that_race_a_taker_leave_a_whole_log(durable_replica: DurableReplica) -> None:
    ours, theirs = await durable_replica(), await durable_replica()
    await claim_run(ours, lease=-1.0)

    under_way = asyncio.Event()

    async def write() -> int:
        for seq in range(1, 200):
            try:
                await ours.append(RUN, A, envelopes(seq, seq))
            except LeaseLost:
                return seq - 1
            if seq == 5:
                under_way.set()
            await asyncio.sleep(0)
        return 199

    async def take() -> None:
        await under_way.wait()
        while not await theirs.take_over(B, 300.0):
            pass  # a run whose row is locked by a write is left to the next round

    written, _ = await asyncio.gather(write(), take())
    assert (await get_run(theirs)).last_seq == written
    assert list(await theirs.envelopes(RUN, 0)) == envelopes(1, written)


async def test_a_deleted_threads_run_is_nobodys(durable: DurableStore) -> None:
    await claim_run(durable, lease=-1.0)
    assert await durable.edit(THREAD, Delete())
    with pytest.raises(LeaseLost):
        await durable.append(RUN, A, envelopes(1, 1))
    with pytest.raises(LeaseLost):
        await durable.finish(RUN, A, [], ending())
    assert list(await durable.take_over(B, 300.0)) == []


async def test_old_runs_are_forgotten_but_known(durable: DurableStore) -> None:
    for n, ended_at in enumerate((10.0, 20.0, 30.0)):
        await claim_run(durable, run(f"r{n}", f"t{n}"))
        await durable.finish(run(f"r{n}", f"t{n}"), A, envelopes(1, 2, f"r{n}"), ending(ended_at=ended_at))
    await claim_run(durable, run("r3", "t3"))
    assert await durable.forget(25.0, 0.0, limit=1) == 1
    assert await durable.forget(25.0, 0.0) == 1
    assert await durable.forget(25.0, 0.0) == 0
    assert list(await durable.envelopes(run("r1", "t1"), 0)) == []
    again = await begin(durable, claim(run("r1", "t1")))
    assert isinstance(again, Exists)
    assert (again.run.has_events, again.run.last_seq) == (False, 2)
    assert len(await durable.envelopes(run("r2", "t2"), 0)) == 2
