"""Limits of the memory store for ended runs. The newest runs are kept longest."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_container.ports.records import (
    AlreadyExists,
    Change,
    Claim,
    Claimed,
    RunKey,
    StoredMessage,
    ThreadKey,
    ThreadRecord,
    ThreadStatus,
)
from agui_container.stores.memory import MemoryStore, data
from agui_container.stores.memory.data import MESSAGE_BYTES, Bounds, MemoryData
from tests.stores.doubles import A, claim, claim_run, ending, envelopes, message, run, store_turn

MANY, POINTER = 5_000, 8
"""Threads, and bytes of a list of them for each."""


async def store_ended_run(store: MemoryStore, n: int, size: int = 0) -> None:
    """Run ``n`` on thread ``n``, with one event of that size and more."""
    key = run("r", f"t{n}")
    await claim_run(store, key)
    await store.runs.finish(key, A, envelopes(1, 1, "r", size), ending())


async def runs_with_events(store: MemoryStore, count: int) -> list[bool]:
    return [bool(await store.runs.envelopes(run("r", f"t{n}"), 0)) for n in range(count)]


async def test_the_oldest_runs_are_forgotten_first() -> None:
    store = MemoryStore(Bounds(runs=2))
    for n in range(4):
        await store_ended_run(store, n)
    assert await runs_with_events(store, 4) == [False, False, True, True]
    again = await store.runs.claim(claim(run("r", "t0")))
    assert isinstance(again, AlreadyExists)
    assert not again.run.has_events


async def test_large_runs_are_forgotten_sooner() -> None:
    store = MemoryStore(Bounds(run_bytes=2_500))
    for n in range(3):
        await store_ended_run(store, n, size=1_000)
    assert await runs_with_events(store, 3) == [False, True, True]


async def test_a_run_that_goes_on_is_never_forgotten() -> None:
    store = MemoryStore(Bounds(runs=1, run_bytes=100, records=1, threads=1))
    await claim_run(store, run("r", "t0"))
    await store.runs.append(run("r", "t0"), A, envelopes(1, 5, "r", 1_000))
    for n in range(1, 4):
        await store_ended_run(store, n)
    assert len(await store.runs.envelopes(run("r", "t0"), 0)) == 5
    await store.runs.finish(run("r", "t0"), A, [], ending())


async def test_ids_of_forgotten_runs_are_known_for_a_while() -> None:
    store = MemoryStore(Bounds(runs=1, records=2))
    for n in range(4):
        await store_ended_run(store, n)
    assert isinstance(await store.runs.claim(claim(run("r", "t2"))), AlreadyExists)
    assert isinstance(await store.runs.claim(claim(run("r", "t1"))), Claimed)


async def test_the_thread_that_changed_longest_ago_makes_room(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore(Bounds(threads=2))
    for n in (0, 1):
        await store_turn(store, key=run("r", f"t{n}"))
    await store.threads.rename(ThreadKey("owner", "t0"), "Kept", 5.0)
    await store_turn(store, key=run("r", "t2"))
    assert [bool(await store.threads.get(ThreadKey("owner", f"t{n}"))) for n in range(3)] == [True, False, True]
    assert "threads evicted from memory count=1" in caplog.text


async def test_metadata_takes_of_the_room_of_threads() -> None:
    store = MemoryStore(Bounds(thread_bytes=2_000))
    for n in (0, 1):
        await store_turn(store, key=run("r", f"t{n}"))
    last = ThreadKey("owner", "t1")
    await store.threads.annotate(last, {"note": 2_000 * "x"})
    assert await store.threads.get(ThreadKey("owner", "t0")) is None
    await store.threads.annotate(last, {"note": None})
    await store_turn(store, key=run("r", "t2"))
    assert await store.threads.get(last) is not None


async def test_the_log_tells_now_and_then_that_threads_make_room(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "LOG_EVERY", 3)
    store = MemoryStore(Bounds(threads=2))
    for n in range(9):
        await store_turn(store, key=run("r", f"t{n}"))
    assert [record.message.split()[-1] for record in caplog.records] == ["count=1", "count=4", "count=7"]


async def test_large_threads_make_room_sooner() -> None:
    store = MemoryStore(Bounds(thread_bytes=2 * (MESSAGE_BYTES + 1_000)))
    for n in range(3):
        await store_turn(store, message("m", "x" * 900), key=run("r", f"t{n}"))
    assert [bool(await store.threads.get(ThreadKey("owner", f"t{n}"))) for n in range(3)] == [False, True, True]
    await claim_run(store, run("again", "t1"))
    await store.runs.change(run("again", "t1"), A, 1.0, Change([message("m", "")], state=b"x" * 10))
    await store_turn(store, message("m", "x" * 300), key=run("r", "t3"))
    assert await store.threads.get(ThreadKey("owner", "t2")) is not None


async def test_making_room_does_not_go_through_all_that_is_kept() -> None:
    store = MemoryStore(Bounds(threads=MANY))
    for n in range(MANY + 1):
        await store_turn(store, key=run("r", f"t{n}"))
    tracemalloc.start()
    try:
        await store_turn(store, key=run("r", "one more"))
        assert tracemalloc.get_traced_memory()[1] < MANY * POINTER
    finally:
        tracemalloc.stop()


async def add_thread(store: MemoryStore, account: str, n: int, size: int, owner: str = "owner") -> ThreadKey:
    """Store a thread of a caller, with one message of that size."""
    key = run(f"r-{account}-{n}", f"{account}-{n}", owner)
    answer = await store.runs.claim(Claim(key, A, 100.0, 115.0, account))
    assert isinstance(answer, Claimed)
    change = Change([message("m", "x" * size)])
    await store.runs.finish(key, A, [], ending(change=change))
    return key.thread


@pytest.mark.parametrize("bounds", [Bounds(threads=20), Bounds(thread_bytes=20_000)])
async def test_threads_of_one_caller_do_not_push_out_those_of_another(bounds: Bounds) -> None:
    store = MemoryStore(bounds)
    waiting = await add_thread(store, "second", 0, 1_000)
    for n in range(50):
        await add_thread(store, "first", n, 1_000, f"invented {n}")
    assert await store.threads.get(waiting) is not None
    await add_thread(store, "first", 50, 100_000)
    assert await store.threads.get(waiting) is not None
    await add_thread(store, "first", 51, 10)
    assert await store.threads.get(waiting) is not None
    assert await store.threads.get(ThreadKey("owner", "first-50")) is None or bounds.threads == 20


async def ended_of(store: MemoryStore, account: str, n: int) -> RunKey:
    """A run of a caller that has ended, with one event of a kilobyte."""
    key = run(f"r-{account}-{n}", f"{account}-{n}", f"invented {n}")
    assert isinstance(await store.runs.claim(Claim(key, A, 100.0, 115.0, account)), Claimed)
    await store.runs.finish(key, A, envelopes(1, 1, key.run_id, 1_000), ending())
    return key


@pytest.mark.parametrize("bounds", [Bounds(runs=20), Bounds(run_bytes=20_000)])
async def test_events_of_ended_runs_of_one_caller_do_not_push_out_those_of_another(bounds: Bounds) -> None:
    store = MemoryStore(bounds)
    ended_before = await ended_of(store, "second", 0)
    for n in range(50):
        await ended_of(store, "first", n)
    assert len(await store.runs.envelopes(ended_before, 0)) == 1


async def test_records_of_runs_of_one_caller_do_not_push_out_those_of_another() -> None:
    store = MemoryStore(Bounds(runs=4, records=20))
    ended_before = await ended_of(store, "second", 0)
    for n in range(50):
        await ended_of(store, "first", n)
    assert await store.runs.get(ended_before) is not None
    assert await store.runs.get(run("r-first-0", "first-0", "invented 0")) is None


async def test_a_thread_that_was_read_from_elsewhere_counts_for_the_caller_who_runs_on_it() -> None:
    store = MemoryStore(Bounds(threads=20))
    waiting = await add_thread(store, "second", 0, 10)
    for n in range(50):
        key = ThreadKey(f"invented {n}", f"first-{n}")
        store.threads.restore(ThreadRecord(key, ThreadStatus.USER_TURN, 1.0, 1.0), Change([message("m", "x")]))
        await add_thread(store, "first", n, 10, key.owner)
    assert await store.threads.get(waiting) is not None


async def test_a_fork_counts_for_the_caller_of_its_thread() -> None:
    store = MemoryStore(Bounds(threads=20))
    waiting = await add_thread(store, "second", 0, 10)
    source = await add_thread(store, "first", 0, 10)
    for n in range(50):
        await store.threads.fork(source, "m", f"fork {n}", 200.0)
        await store.threads.rename(source, f"title {n}", 200.0)
    assert await store.threads.get(waiting) is not None
    assert await store.threads.get(source) is not None


# --- sizes ---

IDS = st.sampled_from(["m0", "m1", "m2", "m3"])
MESSAGES = st.builds(StoredMessage, IDS, st.binary(max_size=9))
CHANGES = st.builds(
    Change, st.lists(MESSAGES, max_size=4), st.none() | st.lists(IDS, max_size=6), st.none() | st.binary(max_size=9)
)


@given(st.lists(st.tuples(st.sampled_from(["t0", "t1", "t2"]), CHANGES | st.none()), max_size=20))
def test_the_size_of_threads_is_the_sum_of_their_contents(steps: list[tuple[str, Change | None]]) -> None:
    """``None`` is the thread's end."""
    kept = MemoryData(Bounds(threads=2))
    for name, change in steps:
        record = ThreadRecord(ThreadKey("owner", name), ThreadStatus.USER_TURN, 1.0, 1.0)
        thread = kept.threads.get(record.key) or kept.create_thread(record)
        if change is None:
            kept.remove(thread)
        else:
            kept.change(thread, change)
        held = [each.data for it in kept.threads.values() for each in it.messages.values()]
        states = [it.state or b"" for it in kept.threads.values()]
        assert kept.eviction.bytes.total == sum(map(len, held + states)) + len(held) * MESSAGE_BYTES
