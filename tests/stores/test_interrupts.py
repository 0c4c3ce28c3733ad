"""What waits for an answer, in every store: an answer is taken once."""

import asyncio

from app.interrupts import MemoryInterrupts
from app.ports.records import Held, Place
from app.ports.store import Store
from tests.stores.conftest import Replica

PLACE = Place(0, "owner", "t1")
OTHERS = (
    Place(1, "owner", "t1"),
    Place(0, "another", "t1"),
    Place(0, "owner", "t2"),
    Place(0, "owner", "t1", "t1/s"),
    Place(0, "owner", "t1/s"),
)


async def test_what_is_held_is_there_in_its_order_and_place(store: Store) -> None:
    await store.interrupts.hold(PLACE, [Held("b", b"1", 50.0), Held("a", b"2", 60.0)])
    await store.interrupts.hold(PLACE, [Held("c", b"3", 70.0), Held("b", b"4", 80.0)])
    await store.interrupts.hold(PLACE, [])
    assert list(await store.interrupts.held(PLACE, 10.0)) == [
        Held("b", b"4", 80.0),
        Held("a", b"2", 60.0),
        Held("c", b"3", 70.0),
    ]
    for other in OTHERS:
        assert list(await store.interrupts.held(other, 10.0)) == []


async def test_an_answer_is_taken_once(store: Store) -> None:
    await store.interrupts.hold(PLACE, [Held("a", b"asked", 50.0)])
    assert await store.interrupts.take(PLACE, "a", b"first", 90.0, 10.0)
    assert not await store.interrupts.take(PLACE, "a", b"second", 90.0, 10.0)
    assert list(await store.interrupts.held(PLACE, 60.0)) == [Held("a", b"first", 90.0, settled=True)]


async def test_an_answer_elsewhere_or_to_nothing_is_not_taken(store: Store) -> None:
    await store.interrupts.hold(PLACE, [Held("a", b"asked", 50.0)])
    for other in OTHERS:
        assert not await store.interrupts.take(other, "a", b"x", 90.0, 10.0)
    assert not await store.interrupts.take(PLACE, "b", b"x", 90.0, 10.0)
    assert list(await store.interrupts.held(PLACE, 10.0)) == [Held("a", b"asked", 50.0)]


async def test_of_answers_at_once_one_is_taken(replica: Replica) -> None:
    stores = [await replica() for _ in range(3)]
    await stores[0].interrupts.hold(PLACE, [Held("a", b"asked", 50.0)])
    answers = [b"%d" % n for n in range(9)]
    taken = await asyncio.gather(
        *(stores[n % 3].interrupts.take(PLACE, "a", answer, 90.0, 10.0) for n, answer in enumerate(answers))
    )
    assert sum(taken) == 1
    (held,) = await stores[0].interrupts.held(PLACE, 10.0)
    assert held == Held("a", answers[taken.index(True)], 90.0, settled=True)


async def test_what_was_settled_can_be_asked_again(store: Store) -> None:
    await store.interrupts.hold(PLACE, [Held("a", b"asked", 50.0)])
    await store.interrupts.take(PLACE, "a", b"answer", 90.0, 10.0)
    await store.interrupts.hold(PLACE, [Held("a", b"result", 90.0, settled=True)])
    assert not await store.interrupts.take(PLACE, "a", b"x", 90.0, 10.0)
    await store.interrupts.hold(PLACE, [Held("a", b"asked again", 95.0)])
    assert await store.interrupts.take(PLACE, "a", b"another answer", 99.0, 10.0)


async def test_what_has_expired_is_neither_shown_nor_answered(store: Store) -> None:
    await store.interrupts.hold(
        PLACE, [Held("a", b"1", 50.0), Held("b", b"2", 60.0), Held("c", b"3", 40.0, settled=True)]
    )
    assert [held.id for held in await store.interrupts.held(PLACE, 50.0)] == ["b"]
    assert not await store.interrupts.take(PLACE, "a", b"x", 90.0, 50.0)
    for _ in range(2):
        await store.interrupts.expire(50.0)
    assert [held.id for held in await store.interrupts.held(PLACE, 0.0)] == ["b"]


async def test_in_memory_the_place_that_was_written_to_longest_ago_makes_room() -> None:
    interrupts = MemoryInterrupts(max_bytes=25, max_places=3)
    places = [Place(n, "owner", "t1") for n in range(4)]
    for place in places[:3]:
        await interrupts.hold(place, [Held("a", b"x" * 8, 50.0)])
    await interrupts.hold(places[0], [Held("b", b"", 50.0)])
    await interrupts.hold(places[3], [Held("a", b"x" * 8, 50.0)])
    assert [len(await interrupts.held(place, 1.0)) for place in places] == [2, 0, 1, 1]
    await interrupts.hold(places[3], [Held("b", b"x" * 8, 50.0)])
    assert [len(await interrupts.held(place, 1.0)) for place in places] == [2, 0, 0, 2]
