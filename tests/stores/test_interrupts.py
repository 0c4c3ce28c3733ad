"""Pending interrupts in every store: an answer is taken once."""

import asyncio

from ag_ui.core import Interrupt, ResumeEntry

from agui_container.engine.persistence.entries import answers_in, entries_of, keep_entries
from agui_container.ports.records import InterruptScope, PendingInterrupt, RunKey, ThreadKey
from agui_container.ports.store import Store
from agui_container.runtime.memory_interrupts import MemoryInterrupts
from agui_container.testing import user_input
from tests.stores.conftest import Replica
from tests.stores.doubles import claim_run

PLACE = InterruptScope(0, "owner", "t1")
OTHERS = (
    InterruptScope(1, "owner", "t1"),
    InterruptScope(0, "another", "t1"),
    InterruptScope(0, "owner", "t2"),
    InterruptScope(0, "owner", "t1", "t1/s"),
    InterruptScope(0, "owner", "t1/s"),
)


async def test_open_interrupts_are_listed_in_the_order_and_scope_they_were_put(store: Store) -> None:
    await store.interrupts.put(PLACE, [PendingInterrupt("b", b"1", 50.0), PendingInterrupt("a", b"2", 60.0)])
    await store.interrupts.put(PLACE, [PendingInterrupt("c", b"3", 70.0), PendingInterrupt("b", b"4", 80.0)])
    await store.interrupts.put(PLACE, [])
    assert list(await store.interrupts.list_open(PLACE, 10.0)) == [
        PendingInterrupt("b", b"4", 80.0),
        PendingInterrupt("a", b"2", 60.0),
        PendingInterrupt("c", b"3", 70.0),
    ]
    for other in OTHERS:
        assert list(await store.interrupts.list_open(other, 10.0)) == []


async def test_an_answer_is_taken_once(store: Store) -> None:
    await store.interrupts.put(PLACE, [PendingInterrupt("a", b"asked", 50.0)])
    assert await store.interrupts.settle(PLACE, "a", b"first", 90.0, 10.0)
    assert not await store.interrupts.settle(PLACE, "a", b"second", 90.0, 10.0)
    assert list(await store.interrupts.list_open(PLACE, 60.0)) == [
        PendingInterrupt("a", b"first", 90.0, is_settled=True)
    ]


async def test_an_answer_elsewhere_or_to_nothing_is_not_taken(store: Store) -> None:
    await store.interrupts.put(PLACE, [PendingInterrupt("a", b"asked", 50.0)])
    for other in OTHERS:
        assert not await store.interrupts.settle(other, "a", b"x", 90.0, 10.0)
    assert not await store.interrupts.settle(PLACE, "b", b"x", 90.0, 10.0)
    assert list(await store.interrupts.list_open(PLACE, 10.0)) == [PendingInterrupt("a", b"asked", 50.0)]


async def test_of_answers_at_once_one_is_taken(replica: Replica) -> None:
    stores = [await replica() for _ in range(3)]
    await stores[0].interrupts.put(PLACE, [PendingInterrupt("a", b"asked", 50.0)])
    answers = [b"%d" % n for n in range(9)]
    taken = await asyncio.gather(
        *(stores[n % 3].interrupts.settle(PLACE, "a", answer, 90.0, 10.0) for n, answer in enumerate(answers))
    )
    assert sum(taken) == 1
    (held,) = await stores[0].interrupts.list_open(PLACE, 10.0)
    assert held == PendingInterrupt("a", answers[taken.index(True)], 90.0, is_settled=True)


async def test_a_settled_interrupt_can_be_asked_again(store: Store) -> None:
    await store.interrupts.put(PLACE, [PendingInterrupt("a", b"asked", 50.0)])
    await store.interrupts.settle(PLACE, "a", b"answer", 90.0, 10.0)
    await store.interrupts.put(PLACE, [PendingInterrupt("a", b"result", 90.0, is_settled=True)])
    assert not await store.interrupts.settle(PLACE, "a", b"x", 90.0, 10.0)
    await store.interrupts.put(PLACE, [PendingInterrupt("a", b"asked again", 95.0)])
    assert await store.interrupts.settle(PLACE, "a", b"another answer", 99.0, 10.0)


async def test_an_expired_interrupt_is_neither_listed_nor_settled(store: Store) -> None:
    await store.interrupts.put(
        PLACE,
        [
            PendingInterrupt("a", b"1", 50.0),
            PendingInterrupt("b", b"2", 60.0),
            PendingInterrupt("c", b"3", 40.0, is_settled=True),
        ],
    )
    assert [held.id for held in await store.interrupts.list_open(PLACE, 50.0)] == ["b"]
    assert not await store.interrupts.settle(PLACE, "a", b"x", 90.0, 50.0)
    for _ in range(2):
        await store.interrupts.expire(50.0)
    assert [held.id for held in await store.interrupts.list_open(PLACE, 0.0)] == ["b"]


async def test_in_memory_all_interrupts_of_a_deleted_thread_are_removed() -> None:
    interrupts = MemoryInterrupts()
    places = [InterruptScope(depth, "owner", thread) for depth in (-1, 0, 1) for thread in ("t1", "t2")]
    for place in places:
        await interrupts.put(place, [PendingInterrupt("a", b"x", 50.0)])
    interrupts.remove(ThreadKey("owner", "t1"))
    assert [len(await interrupts.list_open(place, 1.0)) for place in places] == [0, 1, 0, 1, 0, 1]
    interrupts.remove(ThreadKey("owner", "t1"))


async def test_in_memory_the_place_that_was_written_to_longest_ago_makes_room() -> None:
    interrupts = MemoryInterrupts(max_bytes=25, max_scopes=3)
    places = [InterruptScope(n, "owner", "t1") for n in range(4)]
    for place in places[:3]:
        await interrupts.put(place, [PendingInterrupt("a", b"x" * 8, 50.0)])
    await interrupts.put(places[0], [PendingInterrupt("b", b"", 50.0)])
    await interrupts.put(places[3], [PendingInterrupt("a", b"x" * 8, 50.0)])
    assert [len(await interrupts.list_open(place, 1.0)) for place in places] == [2, 0, 1, 1]
    await interrupts.put(places[3], [PendingInterrupt("b", b"x" * 8, 50.0)])
    assert [len(await interrupts.list_open(place, 1.0)) for place in places] == [2, 0, 0, 2]


async def test_answers_stay_beside_their_questions_until_the_thread_is_deleted(replica: Replica) -> None:
    store, run = await replica(), RunKey("owner", "t1", "r2")
    await claim_run(store, run)
    question, later = Interrupt(id="a", reason="place", message="Where to?"), 9e9
    resume = [ResumeEntry(interrupt_id="a", status="resolved", payload={"city": "Zürich"})]
    answered = user_input("").model_copy(update={"resume": resume})
    await keep_entries(store.interrupts, run, "begin", answers_in(answered, [question], "m1"))
    await store.interrupts.expire(later)
    other = await replica()
    assert await entries_of(other.interrupts, run.thread, later) == [
        {
            "runId": "r2",
            "messageId": "m1",
            "interruptId": "a",
            "reason": "place",
            "message": "Where to?",
            "status": "resolved",
            "payload": {"city": "Zürich"},
        }
    ]
    await other.threads.delete(run.thread)
    assert await entries_of(store.interrupts, run.thread, later) == []
