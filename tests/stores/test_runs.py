"""Runs in every store: one per thread, each event once, in order, byte for byte."""

import asyncio
from itertools import pairwise

import pytest
from ag_ui.core import EventType
from msgspec.structs import replace

from agui_container.ports.records import (
    AlreadyExists,
    Change,
    Claimed,
    RunKey,
    RunStatus,
    ThreadBusy,
    ThreadKey,
    ThreadStatus,
)
from agui_container.ports.store import PAGE, READ_BYTES, READ_EVENTS, BadToken, LeaseLost, Store
from agui_container.protocol.wire.envelope import Envelope
from tests.stores.conftest import Replica
from tests.stores.doubles import RUN, THREAD, A, B, claim, claim_run, ending, envelopes, message, run

ODD = "\0 \\0 \\ \\u0041 \u2028 \U0001f600 ' \" %s :x \x7f"

# --- claims -----------------------------------------------------------------------------------------------------------


async def test_a_claim_begins_a_run_and_its_thread(store: Store) -> None:
    answer = await store.runs.claim(claim())
    assert isinstance(answer, Claimed)
    assert answer.run == await store.runs.get(RUN) == await store.runs.latest(THREAD)
    assert (answer.run.replica, answer.run.status, answer.run.last_seq) == (A, RunStatus.RUNNING, 0)
    thread = await store.threads.get(THREAD)
    assert thread is not None
    assert (thread.status, thread.active_run, thread.created_at) == (ThreadStatus.AGENT_TURN, "r1", 100.0)


async def test_a_second_claim_of_a_run_is_told_of_the_first(store: Store) -> None:
    first = await claim_run(store)
    assert await store.runs.claim(claim(replica=B, now=101.0)) == AlreadyExists(first)
    await store.runs.finish(RUN, A, [], ending())
    again = await store.runs.claim(claim(replica=B))
    assert isinstance(again, AlreadyExists)
    assert again.run.status is RunStatus.FINISHED


async def test_a_claim_on_a_busy_thread_is_told_of_the_active_run(store: Store) -> None:
    first = await claim_run(store)
    assert await store.runs.claim(claim(run("r2"), B)) == ThreadBusy(first)
    assert await store.runs.get(run("r2")) is None


async def test_a_run_continues_the_latest_run_of_its_thread_and_no_older_one(store: Store) -> None:
    assert isinstance(await store.runs.claim(replace(claim(RUN), continues="gone")), Claimed)
    await store.runs.finish(RUN, A, [], ending())
    second = await store.runs.claim(replace(claim(run("r2")), continues="r1"))
    assert isinstance(second, Claimed)
    await store.runs.finish(run("r2"), A, [], ending())
    late = await store.runs.claim(replace(claim(run("r3"), B), continues="r1"))
    assert isinstance(late, ThreadBusy)
    assert late.run == await store.runs.get(run("r2"))
    assert await store.runs.get(run("r3")) is None


@pytest.mark.parametrize("other", [run("r2", "t2"), run("r1", "t1", "another"), run("r1", "t2")])
async def test_other_threads_and_owners_are_not_in_the_way(store: Store, other: RunKey) -> None:
    await claim_run(store)
    assert isinstance(await store.runs.claim(claim(other)), Claimed)


async def test_of_claims_at_once_one_gets_the_thread(replica: Replica) -> None:
    stores = [await replica() for _ in range(3)]
    claims = [claim(run(f"r{n}"), f"replica-{n % 3}") for n in range(12)]
    answers = await asyncio.gather(*(stores[n % 3].runs.claim(each) for n, each in enumerate(claims)))
    (winner,) = [answer.run for answer in answers if isinstance(answer, Claimed)]
    assert [answer for answer in answers if not isinstance(answer, Claimed)] == [ThreadBusy(winner)] * 11


async def test_of_equal_claims_at_once_one_runs(replica: Replica) -> None:
    stores = [await replica() for _ in range(3)]
    answers = await asyncio.gather(
        *(each.runs.claim(claim(replica=f"replica-{n}")) for n, each in enumerate(stores * 3))
    )
    (winner,) = [answer.run for answer in answers if isinstance(answer, Claimed)]
    assert [answer for answer in answers if not isinstance(answer, Claimed)] == [AlreadyExists(winner)] * 8


async def test_odd_names_are_names(store: Store) -> None:
    key = RunKey(ODD, ODD * 8, ODD * 9)
    record = await claim_run(store, key)
    assert record.key == key
    assert await store.runs.get(key) == record
    assert isinstance(await store.runs.claim(claim(key._replace(run_id="other"))), ThreadBusy)
    assert [run.key for run in (await store.runs.list(ODD)).items] == [key]
    await store.runs.change(key, A, 1.0, Change([message(ODD * 400)], title=ODD))
    thread = await store.threads.get(key.thread)
    assert thread is not None
    assert thread.title == ODD


# --- envelopes --------------------------------------------------------------------------------------------------------


async def test_envelopes_come_back_as_they_were(store: Store) -> None:
    await claim_run(store)
    texts = [b"", ODD.encode(), bytes(range(256)), b"x" * 300_000]
    batch = [Envelope("r1", seq, EventType.RAW, data) for seq, data in enumerate(texts, start=1)]
    await store.runs.append(RUN, A, batch)
    assert list(await store.runs.envelopes(RUN, 0)) == batch


async def test_every_kind_of_event_can_be_stored(store: Store) -> None:
    await claim_run(store)
    batch = [Envelope("r1", seq, kind, b"{}") for seq, kind in enumerate(EventType, start=1)]
    await store.runs.append(RUN, A, batch)
    assert list(await store.runs.envelopes(RUN, 0)) == batch


async def test_batches_follow_each_other(store: Store) -> None:
    await claim_run(store)
    for first, last in pairwise((0, 1, 4, 4, 30)):
        await store.runs.append(RUN, A, envelopes(first + 1, last))
    assert list(await store.runs.envelopes(RUN, 0)) == envelopes(1, 30)
    assert list(await store.runs.envelopes(RUN, 28)) == envelopes(29, 30)
    assert list(await store.runs.envelopes(RUN, 30)) == []
    record = await store.runs.get(RUN)
    assert record is not None
    assert record.last_seq == 30


async def test_events_are_not_stored_twice(store: Store) -> None:
    await claim_run(store)
    await store.runs.append(RUN, A, envelopes(1, 5))
    await store.runs.append(RUN, A, envelopes(1, 5))
    await store.runs.append(RUN, A, envelopes(3, 8))
    assert list(await store.runs.envelopes(RUN, 0)) == envelopes(1, 8)


async def test_a_gap_is_refused(store: Store) -> None:
    await claim_run(store)
    with pytest.raises(ValueError, match="2 cannot follow 0"):
        await store.runs.append(RUN, A, envelopes(2, 3))
    assert list(await store.runs.envelopes(RUN, 0)) == []


async def test_a_read_is_bounded_in_events_and_in_bytes(store: Store) -> None:
    await claim_run(store)
    small, large, huge = envelopes(1, 1_020), envelopes(1_021, 1_030, size=READ_BYTES // 3), envelopes(1_031, 1_040)
    huge[0] = huge[0]._replace(data=b" " * READ_BYTES)
    await store.runs.append(RUN, A, [*small, *large, *huge])
    assert list(await store.runs.envelopes(RUN, 10)) == small[10 : 10 + READ_EVENTS]
    assert list(await store.runs.envelopes(RUN, 1_022)) == large[2:5]
    assert list(await store.runs.envelopes(RUN, 1_030)) == huge[:1]


async def test_events_of_an_unknown_run_are_none(store: Store) -> None:
    assert list(await store.runs.envelopes(RUN, 0)) == []
    assert await store.runs.get(RUN) is None
    assert await store.runs.latest(THREAD) is None


# --- ends -------------------------------------------------------------------------------------------------------------


async def test_an_end_frees_the_thread_with_everything_of_the_run(store: Store) -> None:
    await claim_run(store)
    await store.runs.append(RUN, A, envelopes(1, 2))
    change = Change([message("m1", "hello", "r1")], state=b'{"a": 1}', title="Hello")
    await store.runs.finish(RUN, A, envelopes(3, 3), ending(change, turn=ThreadStatus.CLIENT_TOOL_TURN))
    record = await store.runs.get(RUN)
    assert record is not None
    assert (record.status, record.ended_at, record.usage) == (RunStatus.FINISHED, 200.0, b'[{"inputTokens":1}]')
    assert list(await store.runs.envelopes(RUN, 0)) == envelopes(1, 3)
    delta = await store.threads.changes(THREAD)
    assert delta is not None
    assert (list(delta.messages), delta.state) == ([message("m1", "hello", "r1")], b'{"a": 1}')
    thread = delta.thread
    assert (thread.title, thread.status, thread.active_run) == ("Hello", ThreadStatus.CLIENT_TOOL_TURN, None)
    assert isinstance(await store.runs.claim(claim(run("r2"))), Claimed)


async def test_an_end_that_is_told_again_changes_nothing(store: Store) -> None:
    await claim_run(store)
    end = ending(Change([message("m1")]))
    await store.runs.finish(RUN, A, envelopes(1, 2), end)
    delta = await store.threads.changes(THREAD)
    await store.runs.finish(RUN, A, envelopes(1, 2), end)
    assert await store.threads.changes(THREAD) == delta
    assert list(await store.runs.envelopes(RUN, 0)) == envelopes(1, 2)


async def test_an_end_stores_what_an_unheard_append_had_not(store: Store) -> None:
    await claim_run(store)
    await store.runs.append(RUN, A, envelopes(1, 2))
    await store.runs.finish(RUN, A, envelopes(1, 4), ending())
    assert list(await store.runs.envelopes(RUN, 0)) == envelopes(1, 4)


async def test_an_end_with_a_gap_is_no_end(store: Store) -> None:
    await claim_run(store)
    with pytest.raises(ValueError, match="5 cannot follow 0"):
        await store.runs.finish(RUN, A, envelopes(5, 5), ending(Change([message("m1")])))
    record = await store.runs.get(RUN)
    assert record is not None
    assert record.is_active
    delta = await store.threads.changes(THREAD)
    assert delta is not None
    assert list(delta.messages) == []


async def test_nothing_is_written_after_the_end(store: Store) -> None:
    await claim_run(store)
    await store.runs.finish(RUN, A, envelopes(1, 1), ending())
    with pytest.raises(LeaseLost):
        await store.runs.append(RUN, A, envelopes(2, 2))
    with pytest.raises(LeaseLost):
        await store.runs.finish(RUN, A, [], ending(ended_at=201.0))
    with pytest.raises(LeaseLost):
        await store.runs.change(RUN, A, 201.0, Change(title="x"))
    assert list(await store.runs.envelopes(RUN, 0)) == envelopes(1, 1)


# --- lists ------------------------------------------------------------------------------------------------------------


async def test_runs_are_listed_newest_first_page_by_page(store: Store) -> None:
    keys = [run(f"r{n}", f"t{n}") for n in range(PAGE + 2)]
    for key in keys:
        await claim_run(store, key)
    await claim_run(store, run("x", "x", "another"))
    first = await store.runs.list("owner")
    rest = await store.runs.list("owner", page=first.next)
    assert [record.key for record in (*first.items, *rest.items)] == keys[::-1]
    assert (len(first.items), rest.next) == (PAGE, None)
    rest = await store.runs.list(None, page=(await store.runs.list(None)).next)
    assert len(rest.items) == 3


async def test_active_runs_are_listed_by_themselves(store: Store) -> None:
    for n in range(3):
        await claim_run(store, run(f"r{n}", f"t{n}"))
    await store.runs.finish(run("r1", "t1"), A, [], ending())
    active = await store.runs.list("owner", active=True)
    assert [record.key.run_id for record in active.items] == ["r2", "r0"]


async def test_a_strange_page_is_refused(store: Store) -> None:
    with pytest.raises(BadToken):
        await store.runs.list("owner", page="never given")
    with pytest.raises(BadToken):
        await store.threads.list("owner", page="never given")
    with pytest.raises(BadToken):
        await store.feedbacks.reviews(page="never given")


async def test_the_latest_run_of_a_thread_is_the_one_that_was_claimed_last(store: Store) -> None:
    for run_id in ("r1", "r2"):
        await claim_run(store, run(run_id))
        await store.runs.finish(run(run_id), A, [], ending())
    latest = await store.runs.latest(ThreadKey("owner", "t1"))
    assert latest is not None
    assert latest.key == run("r2")
