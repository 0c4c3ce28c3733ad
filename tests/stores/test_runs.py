"""Runs in every store: one per thread, each event once, in order, byte for byte."""

import asyncio

import pytest
from ag_ui.core import EventType
from msgspec.structs import replace

from agui_container.ports.records import (
    Begun,
    Busy,
    Change,
    Exists,
    Lease,
    RunStatus,
    ThreadDelta,
    ThreadNote,
    ThreadStatus,
)
from agui_container.ports.store import (
    PAGE,
    READ_BYTES,
    READ_EVENTS,
    BadToken,
    Delete,
    DurableStore,
    LeaseLost,
    RunQuery,
    Store,
)
from agui_container.protocol.envelope import Envelope
from tests.stores.conftest import DurableReplica, Replica
from tests.stores.doubles import (
    RUN,
    THREAD,
    A,
    B,
    begin,
    claim,
    claim_run,
    ending,
    envelopes,
    get_delta,
    get_run,
    get_thread,
    message,
    run,
    store_turn,
    thread_of,
)

ODD = "\0 \\0 \\ \\u0041 \u2028 \U0001f600 ' \" %s :x \x7f"


async def test_a_claim_begins_a_run_and_its_thread(store: Store) -> None:
    answer = await begin(store, claim())
    assert isinstance(answer, Begun)
    assert answer.run == await store.run(RUN)
    assert (answer.run.replica, answer.run.status, answer.run.last_seq) == (A, RunStatus.RUNNING, 0)
    thread = await get_thread(store)
    assert (thread.status, thread.active_run, thread.created_at) == (ThreadStatus.AGENT_TURN, "r1", 100.0)


async def test_a_second_claim_of_a_run_is_told_of_the_first(store: Store) -> None:
    first = await claim_run(store)
    assert await begin(store, claim(replica=B, now=101.0)) == Exists(first)
    await store.finish(RUN, A, [], ending())
    again = await begin(store, claim(replica=B))
    assert isinstance(again, Exists)
    assert again.run.status is RunStatus.FINISHED


async def test_a_claim_on_a_busy_thread_is_told_of_the_active_run(store: Store) -> None:
    first = await claim_run(store)
    assert await begin(store, claim(run("r2"), B)) == Busy(first)
    assert await store.run(run("r2")) is None


async def test_a_run_continues_the_latest_run_of_its_thread_and_no_older_one(store: Store) -> None:
    assert isinstance(await begin(store, replace(claim(RUN), continues="gone")), Begun)
    await store.finish(RUN, A, [], ending())
    second = await begin(store, replace(claim(run("r2")), continues="r1"))
    assert isinstance(second, Begun)
    await store.finish(run("r2"), A, [], ending())
    late = await begin(store, replace(claim(run("r3"), B), continues="r1"))
    assert isinstance(late, Busy)
    assert late.run == await store.run(run("r2"))
    assert await store.run(run("r3")) is None


async def test_of_claims_at_once_one_gets_the_thread(replica: Replica) -> None:
    stores = [await replica() for _ in range(3)]
    claims = [claim(run(f"r{n}"), f"replica-{n % 3}") for n in range(12)]
    answers = await asyncio.gather(*(begin(stores[n % 3], each) for n, each in enumerate(claims)))
    (winner,) = [answer.run for answer in answers if isinstance(answer, Begun)]
    assert [answer for answer in answers if not isinstance(answer, Begun)] == [Busy(winner)] * 11


async def test_envelopes_come_back_as_they_were(durable: DurableStore) -> None:
    await claim_run(durable)
    texts = [b"", ODD.encode(), bytes(range(256)), b"x" * 300_000]
    batch = [Envelope("r1", seq, EventType.RAW, data) for seq, data in enumerate(texts, start=1)]
    await durable.append(RUN, A, batch)
    assert list(await durable.envelopes(RUN, 0)) == batch


async def test_a_gap_is_refused(durable: DurableStore) -> None:
    await claim_run(durable)
    with pytest.raises(ValueError, match="2 cannot follow 0"):
        await durable.append(RUN, A, envelopes(2, 3))
    assert list(await durable.envelopes(RUN, 0)) == []


async def test_a_read_is_bounded_in_events_and_in_bytes(durable: DurableStore) -> None:
    await claim_run(durable)
    small, large, huge = envelopes(1, 1_020), envelopes(1_021, 1_030, size=READ_BYTES // 3), envelopes(1_031, 1_040)
    huge[0] = huge[0]._replace(data=b" " * READ_BYTES)
    await durable.append(RUN, A, [*small, *large, *huge])
    assert list(await durable.envelopes(RUN, 10)) == small[10 : 10 + READ_EVENTS]
    assert list(await durable.envelopes(RUN, 1_022)) == large[2:5]
    assert list(await durable.envelopes(RUN, 1_030)) == huge[:1]


async def test_an_end_frees_the_thread_with_everything_of_the_run(store: Store) -> None:
    await claim_run(store)
    change = Change([message("m1", "hello", "r1")], state=b'{"a": 1}', title="Hello")
    await store.finish(RUN, A, [], ending(change, turn=ThreadStatus.CLIENT_TOOL_TURN))
    record = await get_run(store)
    assert (record.status, record.ended_at, record.usage) == (RunStatus.FINISHED, 200.0, b'[{"inputTokens":1}]')
    delta = await get_delta(store)
    assert (list(delta.messages), delta.state) == ([message("m1", "hello", "r1")], b'{"a": 1}')
    thread = delta.thread
    assert (thread.title, thread.status, thread.active_run) == ("Hello", ThreadStatus.CLIENT_TOOL_TURN, None)
    assert isinstance(await begin(store, claim(run("r2"))), Begun)


async def test_an_end_that_is_told_again_changes_nothing(store: Store) -> None:
    await claim_run(store)
    end = ending(Change([message("m1")]))
    await store.finish(RUN, A, [], end)
    delta = await store.thread(THREAD)
    await store.finish(RUN, A, [], end)
    assert await store.thread(THREAD) == delta


async def test_an_owner_has_the_tokens_of_the_ends_of_a_day_also_of_deleted_threads(replica: Replica) -> None:
    first, second = await replica(), await replica()
    for store, key, tokens in ((first, RUN, 3), (second, run("r2"), 4), (second, run("r3", "t1", "other"), 5)):
        await claim_run(store, key)
        for _ in range(2):  # a repeated call
            await store.finish(key, A, [], replace(ending(), tokens=tokens))
    await first.edit(THREAD, Delete())
    assert [(await first.tokens(owner)).tokens for owner in ("owner", "other", "third")] == [7, 5, 0]


async def test_an_end_stores_what_an_unheard_append_had_not_and_nothing_follows_it(durable: DurableStore) -> None:
    await claim_run(durable)
    await durable.append(RUN, A, envelopes(1, 2))
    await durable.finish(RUN, A, envelopes(1, 4), ending())
    await durable.finish(RUN, A, envelopes(1, 4), ending())
    with pytest.raises(LeaseLost):
        await durable.append(RUN, A, envelopes(5, 5))
    assert list(await durable.envelopes(RUN, 0)) == envelopes(1, 4)


async def test_nothing_is_written_after_the_end(store: Store) -> None:
    await claim_run(store)
    await store.finish(RUN, A, [], ending())
    with pytest.raises(LeaseLost):
        await store.finish(RUN, A, [], ending(ended_at=201.0))


async def test_runs_are_listed_newest_first_page_by_page(durable: DurableStore) -> None:
    keys = [run(f"r{n}", f"t{n}") for n in range(PAGE + 2)]
    for key in keys:
        await claim_run(durable, key)
    await claim_run(durable, run("x", "x", "another"))
    first = await durable.runs(RunQuery("owner"))
    rest = await durable.runs(RunQuery("owner"), page=first.next)
    assert [record.key for record in (*first.items, *rest.items)] == keys[::-1]
    assert (len(first.items), rest.next) == (PAGE, None)
    rest = await durable.runs(RunQuery(), page=(await durable.runs(RunQuery())).next)
    assert len(rest.items) == 3
    with pytest.raises(BadToken):
        await durable.runs(RunQuery(), page="x")


async def test_runs_are_listed_by_their_thread_their_id_and_whether_they_are_open(durable: DurableStore) -> None:
    for key in (run("a", "t1"), run("b", "t1"), run("a", "t2"), run("a", "t1", "another")):
        await claim_run(durable, key)
        if key != run("a", "t2"):
            await durable.finish(key, A, [], ending())
    rows = {
        RunQuery("owner", "t1"): ["b", "a"],
        RunQuery("owner", "t1", is_open=True): [],
        RunQuery("owner", run_id="a"): ["a", "a"],
        RunQuery("owner", is_open=True): ["a"],
        RunQuery("owner", "t3"): [],
    }
    for query, expected in rows.items():
        assert [record.key.run_id for record in (await durable.runs(query)).items] == expected
    newest = await durable.runs(RunQuery("owner", run_id="a"), limit=1)
    assert [record.key for record in newest.items] == [run("a", "t2")]


async def test_the_input_of_a_run_is_merged_with_its_thread_in_one_step(store: Store) -> None:
    await store_turn(store, message("m1"), key=run("r0"))
    await store.put_notes(THREAD, [ThreadNote("call", "n", b"1"), ThreadNote("fact", "n", b"2")])
    seen: list[ThreadDelta] = []

    async def merge(stored: ThreadDelta) -> Change:
        seen.append(stored)
        return Change([message("m2")], state=b"1", notes=[ThreadNote("call", "o", b"3")])

    assert isinstance(await store.begin(replace(claim(), notes=("call",)), merge), Begun)
    (stored,) = seen
    assert (list(stored.messages), list(stored.notes)) == ([message("m1")], [ThreadNote("call", "n", b"1")])
    after = await get_delta(store, THREAD, notes=("call",))
    assert ([each.id for each in after.messages], after.state, len(after.notes)) == (["m1", "m2"], b"1", 2)


async def test_a_run_whose_input_cannot_be_merged_leaves_nothing(store: Store) -> None:
    async def refuse(_: ThreadDelta) -> Change:
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            await store.begin(claim(), refuse)
        assert (await store.run(RUN), await store.thread(THREAD)) == (None, None)
    await store_turn(store, message("m1"), key=run("r0"))
    before = await thread_of(store)
    with pytest.raises(ValueError, match="no"):
        await store.begin(claim(), refuse)
    assert await thread_of(store) == before
    assert await store.run(RUN) is None


async def test_a_run_that_waits_is_stored_and_begins_in_its_turn(durable_replica: DurableReplica) -> None:
    store, other = await durable_replica(), await durable_replica()
    first = await claim_run(store)
    waiting = replace(claim(run("r2")), is_queued=True)
    assert await store.enqueue(claim(run("r2"))) is None
    known = await store.enqueue(claim(run("r2"), B))
    assert known is not None
    assert (known, known.status, known.replica) == (await other.run(run("r2")), RunStatus.QUEUED, A)
    assert await begin(store, waiting) == Busy(first)
    assert (await get_thread(other)).active_run == "r1"
    await store.finish(RUN, A, [], ending())
    assert await begin(other, claim(run("r3"), B)) == Busy(known)
    begun = await begin(store, waiting, Change([message("m2")]))
    assert isinstance(begun, Begun)
    assert begun.run.status is RunStatus.RUNNING
    await store.append(run("r2"), A, envelopes(1, 1, "r2"))


async def test_the_cancellation_of_a_run_that_waits_is_known_when_it_begins(durable: DurableStore) -> None:
    await claim_run(durable)
    await durable.enqueue(claim(run("r2")))
    assert await durable.cancel(run("r2"))
    assert await durable.renew(A, 15.0) == {RUN: Lease(), run("r2"): Lease(is_cancel_requested=True)}
    await durable.finish(RUN, A, [], ending())
    begun = await begin(durable, replace(claim(run("r2")), is_queued=True))
    assert isinstance(begun, Begun)
    assert begun.run.is_cancel_requested


async def test_a_run_that_waits_is_deleted_with_its_thread(store: Store) -> None:
    await claim_run(store)
    await store.enqueue(claim(run("r2")))
    assert await store.edit(THREAD, Delete())
    with pytest.raises(LeaseLost):
        await begin(store, replace(claim(run("r2")), is_queued=True))
    assert await store.thread(THREAD) is None


async def test_a_run_that_waits_on_a_dead_replica_is_ended_and_the_thread_stays_as_it_is(durable: DurableStore) -> None:
    await claim_run(durable)
    await durable.enqueue(claim(run("r2"), lease=-1.0))
    before = await thread_of(durable)
    (dead,) = await durable.take_over(B, 15.0)
    assert dead.key == run("r2")
    await durable.finish(run("r2"), B, envelopes(1, 1, "r2"), replace(ending(status=RunStatus.ERROR), turn=None))
    after = await get_thread(durable)
    assert before is not None
    assert (after.active_run, after.status) == (before.active_run, before.status)
