"""Limits of the memory store for ended runs. The newest runs are kept longest."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agui_container.ports.records import (
    CHARACTER_BYTES,
    ITEM_BYTES,
    AlreadyExists,
    Change,
    Claimed,
    Feedback,
    GoalStatus,
    StoredGoal,
    StoredMessage,
    ThreadKey,
    ThreadRecord,
    ThreadStatus,
)
from agui_container.stores.memory import MemoryStore, data
from agui_container.stores.memory.data import Bounds, MemoryData, MemoryThread
from tests.stores.doubles import A, claim, claim_run, ending, envelopes, message, run, store_turn

MANY, POINTER = 5_000, 8
"""Threads, and bytes of a list of them for each."""


async def store_ended_run(store: MemoryStore, n: int, size: int = 0) -> None:
    """Run ``n`` on thread ``n``, with one event of that size and more."""
    key = run("r", f"t{n}")
    await claim_run(store, key)
    await store.runs.finish(key, A, envelopes(1, 1, "r", size), ending())


async def test_a_run_that_goes_on_is_never_forgotten() -> None:
    store = MemoryStore(Bounds(records=1, threads=1))
    await claim_run(store, run("r", "t0"))
    await store.runs.append(run("r", "t0"), A, envelopes(1, 5, "r", 1_000))
    for n in range(1, 4):
        await store_ended_run(store, n)
    assert len(await store.runs.envelopes(run("r", "t0"), 0)) == 5
    await store.runs.finish(run("r", "t0"), A, [], ending())


async def test_ids_of_forgotten_runs_are_known_for_a_while() -> None:
    store = MemoryStore(Bounds(records=2))
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


async def test_feedback_takes_of_the_room_of_threads() -> None:
    store = MemoryStore(Bounds(thread_bytes=18_000))
    for n in range(3):
        await store_turn(store, message("m"), key=run("r", f"t{n}"))
    last = ThreadKey("owner", "t2")
    for notes in ("x" * 1_000, "x" * 4_000):
        await store.feedbacks.put(last, Feedback("m", "negative", (), notes, 1.0, 1.0))
    assert [bool(await store.threads.get(ThreadKey("owner", f"t{n}"))) for n in range(3)] == [False, True, True]


async def test_goals_take_of_the_room_of_threads() -> None:
    store = MemoryStore(Bounds(thread_bytes=20_000))
    goals = [StoredGoal("r", n, "g", b" " * 6_000, 1.0) for n in range(2)]
    await store_turn(store, message("m"), key=run("r", "t0"))
    await claim_run(store, run("r", "t1"))
    for _ in range(2):
        await store.goals.declare(run("r", "t1"), goals)
    assert await store.threads.get(ThreadKey("owner", "t0")) is not None
    await store.goals.conclude(run("r", "t1"), 0, GoalStatus.ACHIEVED, 2.0, result=b" " * 8_000)
    assert await store.threads.get(ThreadKey("owner", "t0")) is None


async def test_goals_of_a_run_that_is_forgotten_take_no_room() -> None:
    store = MemoryStore(Bounds(records=2, thread_bytes=20_000))
    await claim_run(store, run("r0", "t0"))
    await store.goals.declare(run("r0", "t0"), [StoredGoal("r0", 0, "g", b" " * 12_000, 1.0)])
    await store.runs.finish(run("r0", "t0"), A, [], ending())
    for n in (1, 2):
        await store_turn(store, message("m"), key=run(f"r{n}", "t0"))
    await store_turn(store, message("m", "x" * 15_000), key=run("r", "t1"))
    delta = await store.threads.changes(ThreadKey("owner", "t0"))
    assert delta is not None
    assert list(delta.goals or ()) == []


async def test_the_log_tells_now_and_then_that_threads_make_room(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "LOG_EVERY", 3)
    store = MemoryStore(Bounds(threads=2))
    for n in range(9):
        await store_turn(store, key=run("r", f"t{n}"))
    assert [record.message.split()[-1] for record in caplog.records] == ["count=1", "count=4", "count=7"]


async def test_large_threads_make_room_sooner() -> None:
    store = MemoryStore(Bounds(thread_bytes=2 * (ITEM_BYTES + 1_000)))
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


# --- sizes ---

IDS = st.sampled_from(["m0", "m1", "m2", "m3"])
MESSAGES = st.builds(StoredMessage, IDS, st.binary(max_size=9))
CHANGES = st.builds(
    Change, st.lists(MESSAGES, max_size=4), st.none() | st.lists(IDS, max_size=6), st.none() | st.binary(max_size=9)
)


TEXTS = st.text(max_size=5)
FEEDBACK = st.builds(Feedback, IDS, TEXTS, st.lists(TEXTS, max_size=2), st.none() | TEXTS, st.just(1.0), st.just(1.0))
GOALS = st.lists(
    st.builds(StoredGoal, st.just("r"), st.integers(0, 3), TEXTS, st.binary(max_size=9), st.just(1.0)), max_size=3
)
STEPS = CHANGES | FEEDBACK | GOALS | st.none()


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from(["t0", "t1", "t2"]), STEPS), max_size=20))
def test_the_size_of_threads_is_the_sum_of_their_contents(
    steps: list[tuple[str, Change | Feedback | list[StoredGoal] | None]],
) -> None:
    """``None`` is the thread's end."""
    kept = MemoryData(Bounds(threads=2))
    for name, step in steps:
        record = ThreadRecord(ThreadKey("owner", name), ThreadStatus.USER_TURN, 1.0, 1.0)
        thread = kept.threads.get(record.key) or kept.create_thread(record)
        match step:
            case None:
                kept.remove(thread)
            case Change():
                kept.change(thread, step)
            case Feedback():
                thread.put_feedback(step, kept.next_number())
                kept.resize(thread)
            case _:
                thread.put_goals("r", step)
                kept.resize(thread)
        assert kept.eviction.total_bytes == sum(map(size_of_contents, kept.threads.values()))


def size_of_contents(thread: MemoryThread) -> int:
    """Sum of the sizes of all that a thread has."""
    goals = [goal for of_run in thread.goals.values() for goal in of_run.values()]
    feedback = [review.feedback for _, review in thread.reviews.values()]
    contents = (
        [each.data for each in thread.messages.values()] + [each.schema for each in goals] + [thread.state or b""]
    )
    items = len(thread.messages) + len(goals) + len(feedback)
    return sum(map(len, contents)) + ITEM_BYTES * items + CHARACTER_BYTES * sum(len(it.notes or "") for it in feedback)
